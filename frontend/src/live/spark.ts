/** The small line at the foot of a tile, drawn by hand: uPlot would cost ten times as much. */
import { color, faded, onThemeChange } from "./colors";
import { type History, historyOf, WINDOW_SECONDS } from "./store";

const POINTS = 90;

/** Means of `POINTS` equal slices of the window; slices without a value are left out. */
function slices(history: History, name: string): [number, number][] {
  const column = history.series.get(name);
  const end = history.t.at(-1);
  if (!column || end === undefined) return [];
  const sums = new Float64Array(POINTS);
  const counts = new Uint16Array(POINTS);
  column.forEach((value, i) => {
    if (value === null) return;
    const slice = Math.floor(((history.t[i]! - end + WINDOW_SECONDS) / (WINDOW_SECONDS + 1)) * POINTS);
    if (slice < 0) return;
    sums[slice]! += value;
    counts[slice]! += 1;
  });
  const points: [number, number][] = [];
  counts.forEach((count, i) => {
    if (count > 0) points.push([i / (POINTS - 1), sums[i]! / count]);
  });
  return points;
}

function canvasOf(box: HTMLElement): HTMLCanvasElement {
  const existing = box.querySelector("canvas");
  if (existing) return existing;
  const canvas = document.createElement("canvas");
  box.append(canvas);
  return canvas;
}

export function drawSpark(box: HTMLElement, history: History): void {
  const canvas = canvasOf(box);
  const scale = window.devicePixelRatio || 1;
  const [width, height] = [box.clientWidth, box.clientHeight];
  if (canvas.width !== width * scale) canvas.width = width * scale;
  if (canvas.height !== height * scale) canvas.height = height * scale;
  const pen = canvas.getContext("2d");
  const points = slices(history, box.dataset.spark!);
  if (!pen) return;
  pen.setTransform(scale, 0, 0, scale, 0, 0);
  pen.clearRect(0, 0, width, height);
  if (points.length < 2) return;
  const values = points.map(([, value]) => value);
  const low = Math.min(...values);
  const range = Math.max(...values) - low || 1;
  const line = new Path2D();
  points.forEach(([x, value], i) => {
    const y = height - 3 - ((value - low) / range) * (height - 6);
    if (i === 0) line.moveTo(x * width, y);
    else line.lineTo(x * width, y);
  });
  const name = box.dataset.color ?? "accent";
  const area = new Path2D(line);
  area.lineTo(points.at(-1)![0] * width, height);
  area.lineTo(points[0]![0] * width, height);
  pen.fillStyle = faded(name, 0.14);
  pen.fill(area);
  pen.strokeStyle = color(name);
  pen.lineWidth = 1.25;
  pen.lineJoin = "round";
  pen.stroke(line);
}

onThemeChange(() => {
  document.querySelectorAll<HTMLElement>("[data-spark]").forEach((box) => drawSpark(box, historyOf(box.dataset.topic!)));
});
