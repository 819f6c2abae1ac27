/**
 * Parts of the page that follow an object: `data-on-change="placement:12 operation server=3"`.
 * On a change the part gets the event `changed`, at most once a second; htmx does the rest
 * (`hx-get="…" hx-trigger="changed"`).
 *
 * `kind:id` follows one object, `kind` all of that kind, `server=id` whatever belongs to a server.
 */
const PAUSE_MS = 1000;
const BUSY_MS = 200;
// By word and not by element: a part that was replaced meanwhile still gets what was asked of it.
const waiting = new Set<string>();
const last = new Map<string, number>();

function selectorOf(word: string): string {
  return `[data-on-change~="${CSS.escape(word)}"]`;
}

/** False for a part that is fetching already: its answer may be older than this change. */
function trigger(part: Element): boolean {
  if (part.classList.contains("htmx-request")) return false;
  part.dispatchEvent(new CustomEvent("changed", { bubbles: false }));
  return true;
}

function fire(word: string): void {
  waiting.delete(word);
  last.set(word, performance.now());
  const busy = [...document.querySelectorAll(selectorOf(word))].filter((part) => !trigger(part));
  if (busy.length > 0) schedule(word, BUSY_MS);
}

function schedule(word: string, wait: number): void {
  if (waiting.has(word)) return;
  waiting.add(word);
  window.setTimeout(() => fire(word), wait);
}

export function refreshChanged(kind: string, id: string, serverId: number | null): void {
  const words = [`${kind}:${id}`, kind, ...(serverId === null ? [] : [`server=${serverId}`])];
  for (const word of words) {
    if (!document.querySelector(selectorOf(word))) continue;
    schedule(word, Math.max(0, (last.get(word) ?? -PAUSE_MS) + PAUSE_MS - performance.now()));
  }
}

export function refreshAll(): void {
  document.querySelectorAll("[data-on-change]").forEach(trigger);
}
