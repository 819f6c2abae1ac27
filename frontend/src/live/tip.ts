/** The box beside the cursor of a chart: the time and every line's value there. */
import type uPlot from "uplot";
import type { Line } from "./charts";
import { written } from "./units";

export class Tip {
  private readonly box = document.createElement("div");
  private readonly time = document.createElement("time");
  private readonly values: HTMLElement[];

  constructor(
    private readonly parent: HTMLElement,
    lines: Line[],
    private readonly unit: string,
  ) {
    this.box.className = "chart-tip";
    this.box.hidden = true;
    this.box.append(this.time);
    this.values = lines.map((line) => this.row(line));
    parent.append(this.box);
  }

  private row(line: Line): HTMLElement {
    const row = document.createElement("div");
    const swatch = document.createElement("i");
    const value = document.createElement("b");
    swatch.className = `swatch ${line.color}`;
    row.append(swatch, line.label, value);
    this.box.append(row);
    return value;
  }

  show(plot: uPlot, index: number, values: (number | null | undefined)[]): void {
    this.time.textContent = new Date(plot.data[0][index]! * 1000).toTimeString().slice(0, 8);
    this.values.forEach((cell, i) => (cell.textContent = written(values[i], this.unit)));
    this.box.hidden = false;
    const left = plot.bbox.left / devicePixelRatio + plot.cursor.left! + 16;
    const flips = left + this.box.offsetWidth > this.parent.clientWidth;
    // A style set through the DOM is allowed by the policy; a style attribute is not.
    this.box.style.transform = `translateX(${flips ? left - this.box.offsetWidth - 26 : left}px)`;
  }

  hide(): void {
    this.box.hidden = true;
  }
}
