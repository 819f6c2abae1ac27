/**
 * Parts of the page that follow an object: `data-on-change="placement:12 operation server=3"`.
 * On a change the part gets the event `changed`, at most once a second; htmx does the rest
 * (`hx-get="…" hx-trigger="changed"`).
 *
 * `kind:id` follows one object, `kind` all of that kind, `server=id` whatever belongs to a server.
 */
const PAUSE_MS = 1000;
const waiting = new WeakSet<Element>();
const last = new WeakMap<Element, number>();

function trigger(part: Element): void {
  if (waiting.has(part)) return;
  const wait = Math.max(0, (last.get(part) ?? 0) + PAUSE_MS - performance.now());
  waiting.add(part);
  window.setTimeout(() => {
    waiting.delete(part);
    last.set(part, performance.now());
    if (part.isConnected) part.dispatchEvent(new CustomEvent("changed", { bubbles: false }));
  }, wait);
}

export function refreshChanged(kind: string, id: string, serverId: number | null): void {
  const words = [`${kind}:${id}`, kind, ...(serverId === null ? [] : [`server=${serverId}`])];
  for (const word of words) {
    document.querySelectorAll(`[data-on-change~="${CSS.escape(word)}"]`).forEach(trigger);
  }
}

export function refreshAll(): void {
  document.querySelectorAll("[data-on-change]").forEach(trigger);
}
