/** Ctrl K: pages at once, servers, models, routes and keys from the server as one types. */
import { iconOf } from "./toasts";

interface Place {
  label: string;
  note: string;
  url: string;
  icon: string;
}

const PAUSE_MS = 120;

function pages(): Place[] {
  return [...document.querySelectorAll<HTMLAnchorElement>("#sidebar .menu a")].map((link) => ({
    label: link.textContent!.trim(),
    note: "",
    url: link.getAttribute("href")!,
    icon: link.querySelector("use")!.getAttribute("href")!.split("#")[1]!,
  }));
}

class Palette {
  private readonly input: HTMLInputElement;
  private readonly list: HTMLElement;
  private readonly none: HTMLElement;
  private places: Place[] = [];
  private chosen = 0;
  private timer = 0;
  private asked: AbortController | null = null;

  constructor(private readonly dialog: HTMLDialogElement) {
    this.input = dialog.querySelector("input")!;
    this.list = dialog.querySelector("ul")!;
    this.none = dialog.querySelector(".none")!;
    this.input.addEventListener("input", () => this.search());
    this.input.addEventListener("keydown", (event) => this.key(event));
    this.list.addEventListener("click", (event) => {
      const item = (event.target as Element).closest("li");
      if (item) this.go([...this.list.children].indexOf(item));
    });
  }

  open(): void {
    if (this.dialog.open) return;
    this.input.value = "";
    this.show(pages());
    this.dialog.showModal();
    this.input.focus();
  }

  private search(): void {
    const typed = this.input.value.trim().toLowerCase();
    const near = pages().filter((place) => place.label.toLowerCase().includes(typed));
    window.clearTimeout(this.timer);
    this.asked?.abort();
    this.show(near, typed === "");
    if (typed !== "") this.timer = window.setTimeout(() => void this.ask(typed, near), PAUSE_MS);
  }

  private async ask(typed: string, near: Place[]): Promise<void> {
    this.asked = new AbortController();
    try {
      const url = `${this.dialog.dataset.url!}?q=${encodeURIComponent(typed)}`;
      const response = await fetch(url, { signal: this.asked.signal, headers: { Accept: "application/json" } });
      const found = response.ok ? ((await response.json()) as { places: Place[] }).places : [];
      this.show([...near, ...found]);
    } catch {
      // Typed on, or the server is away: the pages stay.
    }
  }

  private show(places: Place[], isFinal = true): void {
    this.places = places;
    this.list.replaceChildren(...places.map((place, index) => this.item(place, index)));
    this.none.hidden = places.length > 0 || !isFinal;
    this.choose(0);
  }

  private item(place: Place, index: number): HTMLElement {
    const item = document.createElement("li");
    item.id = `place-${index}`;
    item.setAttribute("role", "option");
    const note = document.createElement("span");
    note.className = "sub";
    note.textContent = place.note;
    item.append(iconOf(place.icon), place.label, note);
    return item;
  }

  private choose(index: number): void {
    this.chosen = index;
    [...this.list.children].forEach((item, i) => item.setAttribute("aria-selected", String(i === index)));
    const item = this.list.children[index];
    this.input.setAttribute("aria-activedescendant", item?.id ?? "");
    item?.scrollIntoView({ block: "nearest" });
  }

  private key(event: KeyboardEvent): void {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step !== undefined && this.places.length > 0) {
      event.preventDefault();
      this.choose((this.chosen + step + this.places.length) % this.places.length);
    } else if (event.key === "Enter") {
      event.preventDefault(); // before the focus moves, or the same Enter presses what has it then
      this.go(this.chosen);
    }
  }

  private go(index: number): void {
    const place = this.places[index];
    if (!place) return;
    this.dialog.close();
    location.assign(place.url);
  }
}

export function startPalette(): void {
  const dialog = document.getElementById("palette") as HTMLDialogElement | null;
  if (!dialog) return;
  const palette = new Palette(dialog);
  document.querySelector("[data-palette]")?.addEventListener("click", () => palette.open());
  document.addEventListener("keydown", (event) => {
    if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k") {
      event.preventDefault();
      palette.open();
    }
  });
}
