/** The values of a chart as a table, one row a minute: what a canvas cannot tell a screen reader. */
import type { Line } from "./charts";
import type { History } from "./store";
import { text } from "../shell/texts";
import { written } from "./units";

function cell(tag: "th" | "td", content: string, isNumber: boolean): HTMLElement {
  const element = document.createElement(tag);
  element.textContent = content;
  if (isNumber) element.className = "num";
  return element;
}

function row(tag: "th" | "td", first: string, rest: string[]): HTMLTableRowElement {
  const element = document.createElement("tr");
  element.append(cell(tag, first, false), ...rest.map((content) => cell(tag, content, true)));
  return element;
}

function minutes(history: History): number {
  const [first, last] = [history.t[0], history.t.at(-1)];
  return first === undefined || last === undefined ? 0 : Math.ceil((last - first) / 60);
}

export function fillTable(details: HTMLDetailsElement, history: History, lines: Line[], unit: string): void {
  details.querySelector(".table-scroll")?.remove();
  if (!details.open) return;
  const table = document.createElement("table");
  const head = table.createTHead();
  head.append(row("th", text("time"), lines.map((line) => line.label)));
  const body = table.createTBody();
  const end = history.t.at(-1) ?? 0;
  for (let minute = 0; minute < minutes(history); minute += 1) {
    const values = lines.map((line) => written(history.mean(line.series, (minute + 1) * 60, minute * 60), unit));
    body.append(row("td", new Date((end - minute * 60) * 1000).toTimeString().slice(0, 5), values));
  }
  const box = document.createElement("div");
  box.className = "table-scroll";
  box.tabIndex = 0;
  box.append(table);
  details.append(box);
}
