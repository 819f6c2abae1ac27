/** Colour tokens as a canvas needs them; a theme switch makes everything draw again. */

/** What the token `--name` resolves to in the present theme. */
export function color(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

/** `name` with the given opacity, 0 to 1. */
export function faded(name: string, opacity: number): string {
  const value = color(name);
  const channels = value.match(/^rgba?\(([^)]+)\)$/)?.[1]?.split(/[\s,/]+/).slice(0, 3);
  if (channels) return `rgba(${channels.join(",")},${opacity})`;
  return value + Math.round(opacity * 255).toString(16).padStart(2, "0");
}

const redraws: (() => void)[] = [];

export function onThemeChange(redraw: () => void): void {
  redraws.push(redraw);
}

export function themeChanged(): void {
  for (const redraw of redraws) redraw();
}

matchMedia("(prefers-color-scheme: dark)").addEventListener("change", themeChanged);
