/** The dozen texts that scripts need, translated by the server (`apps/core/context.py`). */
const texts = JSON.parse(document.getElementById("texts")?.textContent ?? "{}") as Record<string, string>;

/** The text called `name`, with `{0}` replaced by `value`. */
export function text(name: string, value: string | number = ""): string {
  return (texts[name] ?? name).replace("{0}", String(value));
}

export const language = document.documentElement.lang || "en";
