/** How numbers of a unit are written. A missing value is a dash. */
import { language } from "../shell/texts";

export const DASH = "–";

const whole = new Intl.NumberFormat(language, { maximumFractionDigits: 0 });
const one = new Intl.NumberFormat(language, { minimumFractionDigits: 1, maximumFractionDigits: 1 });
const two = new Intl.NumberFormat(language, { minimumFractionDigits: 2, maximumFractionDigits: 2 });
const BINARY = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];

/** Three significant digits or so, without a unit. */
export function plain(value: number): string {
  const size = Math.abs(value);
  if (size >= 100 || Number.isInteger(value)) return whole.format(value);
  return size >= 10 ? one.format(value) : two.format(value);
}

function bytes(value: number): [string, string] {
  let unit = 0;
  while (Math.abs(value) >= 1024 && unit < BINARY.length - 1) {
    value /= 1024;
    unit += 1;
  }
  return [unit === 0 || value >= 100 ? whole.format(value) : one.format(value), BINARY[unit]!];
}

/** Number and unit apart, for tiles: `["812", "ms"]`. */
export function parts(value: number | null | undefined, unit: string): [string, string] {
  if (value == null) return [DASH, ""];
  switch (unit) {
    case "ms":
      if (value === 0) return ["0", "ms"];
      return value >= 1000 ? [two.format(value / 1000), "s"] : [value < 10 ? one.format(value) : whole.format(value), "ms"];
    case "ratio":
      return [value > 0 && value < 0.1 ? one.format(value * 100) : whole.format(value * 100), "%"];
    case "bytes":
      return bytes(value);
    case "per_second":
      return [plain(value), "/s"];
    case "watts":
      return [whole.format(value), "W"];
    default:
      return [plain(value), ""];
  }
}

/** Number with its unit, for cells, legends and axes: `812 ms`. */
export function written(value: number | null | undefined, unit: string): string {
  const [digits, word] = parts(value, unit);
  return word === "" ? digits : word === "/s" ? `${digits}/s` : `${digits} ${word}`;
}
