/** Short results at the corner: `HX-Trigger: {"toast": {"text": …, "tone": "ok|bad|info"}}`. */
import { text } from "./texts";

const SECONDS = 6;
const ICONS: Record<string, { icon: string }> = {
  ok: { icon: "circle-check" },
  bad: { icon: "circle-alert" },
  info: { icon: "info" },
};

/** URL of the icon sprite, hashed name included, taken from an icon of the page. */
function sprite(): string {
  return document.querySelector("svg.icon use")?.getAttribute("href")?.split("#")[0] ?? "";
}

export function iconOf(name: string): SVGSVGElement {
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  const use = document.createElementNS("http://www.w3.org/2000/svg", "use");
  svg.setAttribute("class", "icon");
  svg.setAttribute("aria-hidden", "true");
  use.setAttribute("href", `${sprite()}#${name}`);
  svg.append(use);
  return svg;
}

export function toast(message: string, tone = "info"): void {
  const box = document.createElement("div");
  box.className = `toast ${tone}`;
  const words = document.createElement("p");
  words.textContent = message;
  const close = document.createElement("button");
  close.type = "button";
  close.className = "button quiet icon-only small";
  close.dataset.closeToast = "";
  close.setAttribute("aria-label", text("close"));
  close.append(iconOf("x"));
  box.append(iconOf((ICONS[tone] ?? ICONS.info!).icon), words, close);
  document.getElementById("toasts")?.append(box);
  leave(box);
}

/** A toast goes by itself, but not while somebody reads it or after a failure. */
function leave(box: HTMLElement): void {
  if (box.classList.contains("bad")) return;
  window.setTimeout(() => {
    if (box.matches(":hover, :focus-within")) leave(box);
    else box.remove();
  }, SECONDS * 1000);
}

export function startToasts(): void {
  document.body.addEventListener("toast", (event) => {
    const { text: message, tone } = (event as CustomEvent<{ text: string; tone: string }>).detail;
    toast(message, tone);
  });
  const box = document.getElementById("toasts");
  box?.addEventListener("click", (event) => {
    (event.target as Element).closest("[data-close-toast]")?.closest(".toast")?.remove();
  });
  box?.querySelectorAll<HTMLElement>(".toast").forEach(leave);
}
