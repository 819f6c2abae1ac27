/** `<button data-copy="#id">` copies the text of an element, `data-copy` alone that of `.secret code` beside it. */
import { text } from "./texts";
import { toast } from "./toasts";

async function copy(button: HTMLElement): Promise<void> {
  const selector = button.dataset.copy;
  const source = selector ? document.querySelector(selector) : button.parentElement?.querySelector("code, pre");
  const words = source instanceof HTMLInputElement ? source.value : source?.textContent ?? "";
  try {
    await navigator.clipboard.writeText(words.trim());
    toast(text("copied"), "ok");
  } catch {
    toast(text("not_copied"), "bad"); // no clipboard without https
  }
}

export function startCopying(): void {
  document.addEventListener("click", (event) => {
    const button = (event.target as Element).closest<HTMLElement>("[data-copy]");
    if (button) void copy(button);
  });
}
