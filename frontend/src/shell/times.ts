/** Keeps `<time datetime="…" data-relative>` true. */
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

export function relative(moment: number, now = Date.now()): string {
  const seconds = (now - moment) / 1000;
  return seconds >= 0 ? text("ago", span(seconds)) : text("ahead", span(-seconds));
}

function refresh(): void {
  if (document.hidden) return;
  document.querySelectorAll<HTMLTimeElement>("time[data-relative]").forEach((time) => {
    const words = relative(Date.parse(time.dateTime));
    if (time.textContent !== words) time.textContent = words;
  });
}

export function startTimes(): void {
  window.setInterval(refresh, REFRESH_MS);
}
