/**
 * Charts out of `templates/components/chart.html`: the legend names the lines.
 * All charts of a page share the cursor; the legend shows its values, or the latest.
 */
import uPlot from "uplot";
import { text } from "../shell/texts";
import { color, faded, onThemeChange } from "./colors";
import { fillTable } from "./table";
import { type History, historyOf, WINDOW_SECONDS } from "./store";
import { Tip } from "./tip";
import { written } from "./units";

export interface Line {
  series: string;
  color: string;
  label: string;
  value: HTMLElement;
}

// A hole in the numbers up to this long is bridged: machines are asked every few seconds only.
const BRIDGED_SECONDS = 15;
const FILL_TOP = 0.22;
// Distances between grid lines of bytes: powers of two, so that labels stay round.
const BINARY_STEPS = Array.from({ length: 50 }, (_, power) => 2 ** power);

function linesOf(card: HTMLElement): Line[] {
  return [...card.querySelectorAll<HTMLElement>("[data-series]")].map((entry) => ({
    series: entry.dataset.series!,
    color: entry.dataset.color!,
    label: entry.querySelector("[data-name]")!.textContent!,
    value: entry.querySelector("b")!,
  }));
}

class LiveChart {
  private readonly plotBox: HTMLElement;
  private readonly unit: string;
  private readonly lines: Line[];
  private readonly tip: Tip;
  private plot: uPlot | null = null;
  private pending = false;

  constructor(
    private readonly card: HTMLElement,
    private readonly history: History,
  ) {
    this.plotBox = card.querySelector(".plot")!;
    this.unit = card.dataset.unit!;
    this.lines = linesOf(card);
    this.tip = new Tip(this.plotBox, this.lines, this.unit);
    history.listen(() => this.schedule());
    new ResizeObserver(() => this.resize()).observe(this.plotBox);
    onThemeChange(() => this.plot?.redraw(false, true));
    const table = card.querySelector<HTMLDetailsElement>(".chart-data")!;
    table.addEventListener("toggle", () => fillTable(table, history, this.lines, this.unit));
  }

  private schedule(): void {
    if (this.pending) return;
    this.pending = true;
    requestAnimationFrame(() => {
      this.pending = false;
      this.draw();
    });
  }

  private draw(): void {
    const data = this.data();
    const hasValues = data.slice(1).some((column) => column.some((value) => value != null));
    if (this.card.dataset.optional !== undefined) this.card.hidden = !hasValues;
    if (!hasValues && !this.plot) return this.wait();
    if (this.plotBox.clientWidth === 0) return;
    if (this.plot) this.plot.setData(data);
    else this.create(data);
    this.showLatest();
  }

  private wait(): void {
    this.plotBox.querySelector(".waiting")!.textContent = text("no_numbers");
  }

  private data(): uPlot.AlignedData {
    const empty = (): null[] => new Array<null>(this.history.t.length).fill(null);
    return [this.history.t, ...this.lines.map((line) => this.history.series.get(line.series) ?? empty())];
  }

  private create(data: uPlot.AlignedData): void {
    this.plotBox.querySelector(".waiting")?.remove();
    this.plot = new uPlot(this.options(), data, this.plotBox);
    this.plot.root.setAttribute("aria-hidden", "true");
  }

  private options(): uPlot.Options {
    return {
      width: this.plotBox.clientWidth - 12,
      height: this.plotBox.clientHeight - 6,
      padding: [8, 18, 0, 0],
      legend: { show: false },
      cursor: {
        y: false,
        points: { size: 7 },
        sync: { key: "console" },
        drag: { x: false, y: false },
        dataIdx: (plot, series, index) => nearestKnown(plot.data[series]!, index),
      },
      scales: {
        x: { range: () => this.timeRange() },
        y: { range: (_plot, _low, high) => [0, this.top(high)] },
      },
      axes: [this.timeAxis(), this.valueAxis()],
      series: [{}, ...this.lines.map((line) => this.seriesOf(line))],
      hooks: { setCursor: [(plot) => this.follow(plot)] },
    };
  }

  private timeRange(): [number, number] {
    const end = this.history.t.at(-1) ?? Date.now() / 1000;
    return [end - WINDOW_SECONDS, end];
  }

  private top(high: number): number {
    if (this.unit === "ratio") return 1;
    return high > 0 ? high * 1.15 : 1;
  }

  private timeAxis(): uPlot.Axis {
    return {
      stroke: () => color("axis"),
      font: "11px Inter",
      size: 26,
      space: 90,
      grid: { show: false },
      ticks: { show: false },
      values: (_plot, splits) => splits.map(clock),
    };
  }

  private valueAxis(): uPlot.Axis {
    return {
      stroke: () => color("axis"),
      font: "11px Inter",
      size: 58,
      space: 36,
      gap: 8,
      grid: { stroke: () => color("grid"), width: 1 },
      ticks: { show: false },
      ...(this.unit === "bytes" ? { incrs: BINARY_STEPS } : {}),
      values: (_plot, splits) => splits.map((value) => written(value, this.unit)),
    };
  }

  private seriesOf(line: Line): uPlot.Series {
    return {
      stroke: () => color(line.color),
      fill: (plot) => (line === this.firstKnown() ? this.gradient(plot, line.color) : "transparent"),
      width: 1.4,
      points: { show: false },
      gaps: (plot, _index, _from, _to, gaps) => gaps.filter((gap) => isLong(plot, gap)),
    };
  }

  /** The line with the area under it: the first that anybody reports. */
  private firstKnown(): Line | undefined {
    return this.lines.find((line) => this.history.series.has(line.series));
  }

  private gradient(plot: uPlot, name: string): CanvasGradient | string {
    if (!(plot.bbox.height > 0)) return "transparent";
    const gradient = plot.ctx.createLinearGradient(0, plot.bbox.top, 0, plot.bbox.top + plot.bbox.height);
    gradient.addColorStop(0, faded(name, FILL_TOP));
    gradient.addColorStop(1, faded(name, 0));
    return gradient;
  }

  private follow(plot: uPlot): void {
    const index = plot.cursor.idx;
    if (index == null || plot.cursor.left == null || plot.cursor.left < 0) {
      this.tip.hide();
      this.showLatest();
      return;
    }
    const values = this.lines.map((_line, i) => valueUnderCursor(plot, i + 1));
    this.lines.forEach((line, i) => (line.value.textContent = written(values[i], this.unit)));
    // Only the chart under the pointer shows the tip; the others follow with their legends.
    if (this.plotBox.matches(":hover")) this.tip.show(plot, index, values);
    else this.tip.hide();
  }

  private showLatest(): void {
    if (this.plot?.cursor.idx != null && (this.plot.cursor.left ?? -1) >= 0) return;
    for (const line of this.lines) {
      line.value.textContent = written(this.history.latest(line.series), this.unit);
      // What no server reports (a machine without GPUs) has no place in the legend.
      line.value.parentElement!.hidden = !this.history.series.has(line.series);
    }
  }

  private resize(): void {
    if (this.plotBox.clientWidth === 0) return;
    if (!this.plot) this.schedule();
    else this.plot.setSize({ width: this.plotBox.clientWidth - 12, height: this.plotBox.clientHeight - 6 });
  }
}

function isLong(plot: uPlot, [from, to]: [number, number]): boolean {
  const ratio = uPlot.pxRatio;
  return plot.posToVal(to / ratio, "x") - plot.posToVal(from / ratio, "x") > BRIDGED_SECONDS;
}

/** Index of the value next to `index`, which may be in a hole; `index` itself when none is near. */
function nearestKnown(column: ArrayLike<number | null | undefined>, index: number): number {
  for (let distance = 0; distance <= BRIDGED_SECONDS; distance += 1) {
    if (column[index - distance] != null) return index - distance;
    if (column[index + distance] != null) return index + distance;
  }
  return index;
}

function valueUnderCursor(plot: uPlot, series: number): number | null | undefined {
  const index = plot.cursor.idxs?.[series];
  return index == null ? null : plot.data[series]![index];
}

function clock(seconds: number): string {
  return new Date(seconds * 1000).toTimeString().slice(0, 5);
}

export function startCharts(root: ParentNode): void {
  root.querySelectorAll<HTMLElement>("[data-chart]").forEach((card) => {
    new LiveChart(card, historyOf(card.dataset.chart!));
  });
}
