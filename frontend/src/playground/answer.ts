/** One answer on the page: its text as it comes, its figures, and what the ledger says of it. */
import type { Client, Recorded, Usage } from "./client";

type Render = (text: string) => DocumentFragment;
type Tone = "ok" | "warn" | "bad";

const REDRAW_MS = 100;

function slot(root: ParentNode, name: string): HTMLElement {
  return root.querySelector<HTMLElement>(`[data-slot="${name}"]`)!;
}

/** A copy of the `<template>` with that id, as the element it holds. */
export function cloned(id: string): HTMLElement {
  const template = document.getElementById(id) as HTMLTemplateElement;
  return template.content.firstElementChild!.cloneNode(true) as HTMLElement;
}

export class Answer {
  readonly element = cloned("answer-template");
  text = "";
  #sentAt = performance.now();
  #firstAt = 0;
  #drawTimer = 0;

  constructor(
    private readonly client: Client,
    private readonly render: Render,
    route: string,
  ) {
    this.slot("route").textContent = route;
    this.slot("body").textContent = this.#say("waiting");
  }

  slot(name: string): HTMLElement {
    return slot(this.element, name);
  }

  #say(name: string): string {
    return this.client.config.texts[name] ?? name;
  }

  /** Take more text in; the page is redrawn at most ten times a second. */
  append(piece: string): void {
    if (!piece) return;
    if (!this.#firstAt) this.#showFirstToken();
    this.text += piece;
    this.#drawTimer ||= window.setTimeout(() => this.#draw(), REDRAW_MS);
  }

  /** Show the target as soon as the gateway has told it; the ledger's word comes later. */
  went(target: string): void {
    if (target) this.#figure("target", target);
  }

  #showFirstToken(): void {
    this.#firstAt = performance.now();
    this.#figure("first-token", `${Math.round(this.#firstAt - this.#sentAt)} ms`);
  }

  #draw(): void {
    window.clearTimeout(this.#drawTimer);
    this.#drawTimer = 0;
    this.slot("body").replaceChildren(this.render(this.text));
  }

  /** Show the end: the whole text and how long it took; `usage` where the gateway told it. */
  finish(usage: Usage | null): void {
    const endedAt = performance.now();
    if (this.text) this.#draw();
    else this.slot("body").textContent = this.#say("noAnswer");
    this.#figure("total", `${((endedAt - this.#sentAt) / 1000).toFixed(2)} ${this.#say("seconds")}`);
    if (usage) this.#showUsage(usage, endedAt);
    this.element.setAttribute("aria-busy", "false");
  }

  #showUsage(usage: Usage, endedAt: number): void {
    const output = usage.completion_tokens ?? 0;
    this.#figure("tokens", `${usage.prompt_tokens} → ${output}`);
    const writing = (endedAt - this.#firstAt) / 1000;
    // The first token is there when the clock starts.
    if (this.#firstAt && output > 1 && writing > 0) {
      this.#figure("speed", `${((output - 1) / writing).toFixed(1)} ${this.#say("tokensPerSecond")}`);
    }
  }

  /** Show a vector's size and first values. */
  showVector(vector: number[]): void {
    const first = vector.slice(0, 8).map((value) => value.toFixed(5)).join(", ");
    const code = document.createElement("pre");
    code.textContent = `${vector.length} ${this.#say("dimensions")}\n[${first}${vector.length > 8 ? ", …" : ""}]`;
    this.slot("body").replaceChildren(code);
    this.text = code.textContent;
  }

  /** Say what went wrong, under what has come so far. */
  fail(message: string, detail: string): void {
    if (this.text) this.#draw();
    else this.slot("body").replaceChildren();
    const problem = this.slot("problem");
    problem.textContent = detail ? `${message} (${detail})` : message;
    problem.hidden = false;
    this.element.setAttribute("aria-busy", "false");
  }

  stopped(): void {
    if (this.text) this.#draw();
    else this.slot("body").replaceChildren();
    this.badge(this.#say("stopped"), "warn");
    this.element.setAttribute("aria-busy", "false");
  }

  badge(text: string, tone: Tone): void {
    const badge = this.slot("status");
    badge.textContent = text;
    badge.className = `badge ${tone}`;
    badge.hidden = false;
  }

  /** Wait for the ledger, then show target, cost and how it ended. */
  async settle(requestId: string): Promise<void> {
    if (!requestId) return;
    const record = await this.client.recorded(requestId);
    if (record) this.#showRecord(record);
    else this.#figure("cost", this.#say("notRecorded"));
  }

  #showRecord(record: Recorded): void {
    const version = record.version ? ` v${record.version}` : "";
    const tries = record.attempts > 1 ? ` · ${record.attempts} ${this.#say("attempts")}` : "";
    if (record.server) {
      this.#figure("target", `${record.upstream_model}${version} · ${record.server}${tries}`);
    }
    const cost = record.cost === null ? this.#say("unpriced") : `${record.cost} ${record.currency}`;
    const estimated = record.is_estimated ? ` (${this.#say("estimated")})` : "";
    this.#figure("cost", cost + estimated);
    this.#figure("tokens", `${record.input_tokens} → ${record.output_tokens}${estimated}`);
    if (record.status !== "ok") {
      this.badge(record.status_label, record.status === "error" ? "bad" : "warn");
    }
    const link = this.slot("explain") as HTMLAnchorElement;
    link.href = record.url;
    link.hidden = false;
  }

  #figure(name: string, text: string): void {
    const place = this.slot(name);
    place.textContent = text;
    place.parentElement!.hidden = false;
  }
}
