/** Single keys: `g` and a letter goes to a page, `/` searches, `?` lists them all. */
import { switchTheme } from "./theme";

const TOGETHER_MS = 1200;

function isTyping(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && target.matches("input, textarea, select, [contenteditable]");
}

function focusSearch(): boolean {
  const input = document.querySelector<HTMLInputElement>("#page .search input");
  input?.focus();
  input?.select();
  return input !== null;
}

function go(key: string): void {
  const link = document.querySelector<HTMLAnchorElement>(`#sidebar a[data-key="${CSS.escape(key)}"]`);
  if (link) location.assign(link.href);
}

function single(key: string): boolean {
  switch (key) {
    case "/":
      return focusSearch();
    case "?":
      (document.getElementById("keys") as HTMLDialogElement | null)?.showModal();
      return true;
    case "t":
      switchTheme();
      return true;
    case "p":
      document.querySelector<HTMLElement>("[data-pause]:not([hidden])")?.click();
      return true;
    default:
      return false;
  }
}

export function startKeyboard(): void {
  let leader = 0;
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return;
    if (document.querySelector("dialog[open]")) return;
    const key = event.key.toLowerCase();
    if (performance.now() - leader < TOGETHER_MS && leader > 0) {
      leader = 0;
      go(key);
    } else if (key === "g") {
      leader = performance.now();
    } else if (single(key)) {
      event.preventDefault();
    }
  });
}
