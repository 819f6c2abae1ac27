/**
 * One socket a page: numbers into the histories, changes to `refresh`.
 * Lost, it comes back with growing pauses and polls meanwhile; hidden or paused, it rests.
 */
import { text } from "../shell/texts";
import { refreshAll, refreshChanged } from "./refresh";
import { historyOf, type Snapshot, type Tick, topics } from "./store";

type Watcher = (isAwake: boolean) => void;

interface Changed {
  type: "changed";
  kind: string;
  id: string;
  server_id: number | null;
}
type Frame = Snapshot | Tick | Changed | { type: "heartbeat" };
type State = "live" | "paused" | "stale" | "off";

const POLL_MS = 10_000;
const SILENCE_MS = 25_000;
const SLOWEST_MS = 30_000;
// Close codes after which coming back is of no use: not signed in, may not watch, unknown topic.
const FINAL = new Set([4400, 4401, 4403, 4404]);

export class LiveSocket {
  private socket: WebSocket | null = null;
  private attempts = 0;
  private timer = 0;
  private poller = 0;
  private watchdog = 0;
  private paused = false;
  /** Told when the page falls asleep (hidden, paused) or wakes up. */
  onRest: Watcher = () => undefined;

  constructor(
    private readonly status: HTMLElement,
    private readonly button: HTMLButtonElement | null,
  ) {}

  start(): void {
    this.status.hidden = false;
    if (this.button) this.button.hidden = false;
    this.button?.addEventListener("click", () => this.toggle());
    document.addEventListener("visibilitychange", () => this.rest());
    window.addEventListener("online", () => this.open());
    window.addEventListener("pagehide", () => this.close());
    this.open();
  }

  toggle(): void {
    this.paused = !this.paused;
    this.button?.setAttribute("aria-pressed", String(this.paused));
    this.rest();
  }

  /** Closed while nobody looks or the person has paused; opened again after that. */
  private rest(): void {
    const isAwake = !document.hidden && !this.paused;
    this.onRest(isAwake);
    if (!isAwake) {
      this.close();
      this.show("paused");
    } else if (!this.socket) {
      this.attempts = 0;
      refreshAll();
      this.open();
    }
  }

  private open(): void {
    if (this.socket || document.hidden || this.paused) return;
    window.clearTimeout(this.timer);
    const url = new URL("/ws/live/", location.href);
    url.protocol = url.protocol.replace("http", "ws");
    url.searchParams.set("topics", topics().slice(0, 8).join(",") || "overview");
    const socket = new WebSocket(url);
    this.socket = socket;
    socket.addEventListener("message", (event) => this.receive(String(event.data)));
    socket.addEventListener("close", (event) => {
      if (this.socket === socket) this.lost(event.code);
    });
  }

  private close(): void {
    this.stopPolling();
    this.drop();
  }

  private drop(): void {
    window.clearTimeout(this.timer);
    window.clearTimeout(this.watchdog);
    const socket = this.socket;
    this.socket = null;
    socket?.close();
  }

  private receive(data: string): void {
    const frame = JSON.parse(data) as Frame;
    this.alive();
    if (frame.type === "snapshot") historyOf(frame.topic).replace(frame);
    else if (frame.type === "tick") historyOf(frame.topic).append(frame);
    else if (frame.type === "changed") refreshChanged(frame.kind, frame.id, frame.server_id);
  }

  private alive(): void {
    if (this.attempts > 0) refreshAll(); // what changed while we were away was not told
    this.attempts = 0;
    this.stopPolling();
    this.show("live");
    window.clearTimeout(this.watchdog);
    this.watchdog = window.setTimeout(() => this.lost(0), SILENCE_MS);
  }

  /** Polling goes on over all attempts until one of them succeeds. */
  private lost(code: number): void {
    this.drop();
    if (FINAL.has(code)) {
      this.stopPolling();
      this.show("off");
      return;
    }
    this.attempts += 1;
    if (this.attempts > 1) this.show("stale");
    const pause = Math.min(SLOWEST_MS, 500 * 2 ** this.attempts) * (0.5 + Math.random() / 2);
    this.timer = window.setTimeout(() => this.open(), pause);
    this.poller ||= window.setInterval(() => void this.poll(), POLL_MS);
  }

  private async poll(): Promise<void> {
    refreshAll();
    for (const topic of topics()) {
      try {
        const response = await fetch(`/live/history?topic=${encodeURIComponent(topic)}&minutes=15`);
        if (response.ok) historyOf(topic).replace((await response.json()) as Snapshot);
      } catch {
        return; // the server is away as well; the next turn asks again
      }
    }
  }

  private stopPolling(): void {
    window.clearInterval(this.poller);
    this.poller = 0;
  }

  private show(state: State): void {
    if (this.status.dataset.state === state && this.status.title !== "") return;
    this.status.dataset.state = state;
    this.status.title = text(`live_${state}_title`);
    const word = this.status.querySelector(".word");
    if (word) word.textContent = text(`live_${state}`);
  }
}
