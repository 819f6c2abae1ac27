/**
 * Keeps times true: `<time datetime="…" data-relative>` as "3 min ago", `data-elapsed` as "38 s",
 * and `<progress data-from="…" data-until="…">` as the share of the time that has passed.
 */
import { text } from "./texts";

const REFRESH_MS = 1000;
const STEPS: [number, string][] = [
  [86_400, "days"],
  [3600, "hours"],
  [60, "minutes"],
  [1, "seconds"],
];

function span(seconds: number): string {
  const [size, unit] = STEPS.find(([limit]) => seconds >= limit) ?? STEPS.at(-1)!;
  return text(`span_${unit}`, Math.floor(seconds / size));
}

function relative(moment: number, now: number): string {
  const seconds = (now - moment) / 1000;
  return seconds >= 0 ? text("ago", span(seconds)) : text("ahead", span(-seconds));
}

function write(selector: string, wordsOf: (moment: number) => string): void {
  document.querySelectorAll<HTMLTimeElement>(selector).forEach((time) => {
    const words = wordsOf(Date.parse(time.dateTime));
    if (time.textContent !== words) time.textContent = words;
  });
}

function fill(bar: HTMLProgressElement, now: number): void {
  const from = Date.parse(bar.dataset.from!);
  bar.value = Math.min(1, Math.max(0, (now - from) / (Date.parse(bar.dataset.until!) - from)));
}

function refresh(): void {
  if (document.hidden) return;
  const now = Date.now();
  write("time[data-relative]", (moment) => relative(moment, now));
  write("time[data-elapsed]", (moment) => span(Math.max(0, (now - moment) / 1000)));
  document.querySelectorAll<HTMLProgressElement>("progress[data-from]").forEach((bar) => fill(bar, now));
}

export function startTimes(): void {
  window.setInterval(refresh, REFRESH_MS);
}
