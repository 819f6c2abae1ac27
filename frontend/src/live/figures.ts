/**
 * Numbers of many servers and placements at once, for tables: `data-topic="figures"
 * data-live="placement:12/requests_per_second"`. Asked for every few seconds, only for what is on the page.
 */
import { FIGURES, historyOf, type Tick } from "./store";

const PAUSE_MS = 3000;

/** `server=3&placement=12…` of all cells on the page; "" when there is none. */
function wanted(): string {
  const names = [...document.querySelectorAll<HTMLElement>(`[data-topic="${FIGURES}"]`)].map(
    (cell) => cell.dataset.live!.split("/")[0]!,
  );
  return [...new Set(names)].map((name) => name.replace(":", "=")).join("&");
}

export class Figures {
  private timer = 0;

  rest(isAwake: boolean): void {
    window.clearTimeout(this.timer);
    if (isAwake) void this.ask();
  }

  private async ask(): Promise<void> {
    const query = wanted();
    if (query !== "") await this.fetch(query);
    this.timer = window.setTimeout(() => void this.ask(), PAUSE_MS);
  }

  private async fetch(query: string): Promise<void> {
    try {
      const response = await fetch(`/figures/?${query}`);
      if (response.ok) historyOf(FIGURES).append((await response.json()) as Tick);
    } catch {
      // The server is away: what is shown stays, the live state says so.
    }
  }
}
