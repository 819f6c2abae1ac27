/**
 * Numbers into existing cells: `<td data-live="requests_per_second" data-topic="overview" data-unit="per_second">`.
 *
 * `data-parts` writes number and unit into `.number` and `.unit` of the cell (tiles). A `<progress data-live>` gets the
 * value; with `data-of="memory_total_bytes"` its share of another series.
 * Tiles: `[data-delta]` gets the change against five minutes ago, `[data-spark]` a small line.
 */
import { drawSpark } from "./spark";
import { type History, historyOf } from "./store";
import { parts, written } from "./units";

function write(cell: HTMLElement, history: History): void {
  const name = cell.dataset.live!;
  const value = history.latest(name);
  if (cell instanceof HTMLProgressElement) {
    const total = cell.dataset.of ? history.latest(cell.dataset.of) : 1;
    cell.value = value !== null && total ? value / total : 0;
    return;
  }
  const unit = cell.dataset.unit ?? "";
  if (cell.dataset.parts === undefined) {
    setText(cell, written(value, unit));
    return;
  }
  const [digits, word] = parts(value, unit);
  setText(cell.querySelector(".number")!, digits);
  setText(cell.querySelector(".unit")!, word);
}

function setText(element: Element, value: string): void {
  if (element.textContent !== value) element.textContent = value;
}

/** Change of the last minute against the minute five minutes ago. */
function writeDelta(element: HTMLElement, history: History): void {
  const name = element.dataset.delta!;
  const now = history.mean(name, 60, 0);
  const before = history.mean(name, 360, 300);
  element.classList.remove("bad", "ok");
  if (now === null || before === null || before === 0) {
    setText(element, "");
    return;
  }
  const change = (now - before) / before;
  if (Math.abs(change) < 0.01) {
    setText(element, "");
    return;
  }
  setText(element, `${change > 0 ? "▲" : "▼"} ${Math.min(Math.round(Math.abs(change * 100)), 999)} %`);
  if (element.dataset.worse === "up" && change > 0.15) element.classList.add("bad");
}

function show(history: History, topic: string): void {
  const within = `[data-topic="${CSS.escape(topic)}"]`;
  document.querySelectorAll<HTMLElement>(`[data-live]${within}`).forEach((cell) => write(cell, history));
  document.querySelectorAll<HTMLElement>(`[data-delta]${within}`).forEach((cell) => writeDelta(cell, history));
  document.querySelectorAll<HTMLElement>(`[data-spark]${within}`).forEach((cell) => drawSpark(cell, history));
}

/** Watch the topics of all cells below `root`; new rows of a known topic are filled at once. */
export function watchCells(root: ParentNode): void {
  const named = [...root.querySelectorAll<HTMLElement>("[data-topic]")].map((cell) => cell.dataset.topic!);
  for (const topic of new Set(named)) {
    const history = historyOf(topic);
    if (watched.has(topic)) {
      if (history.t.length > 0) show(history, topic);
    } else {
      watched.add(topic);
      history.listen((changed) => show(changed, topic));
    }
  }
}

const watched = new Set<string>();
