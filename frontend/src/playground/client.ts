/** Calls `/v1` from the page with the playground's key, which lives in memory only. */

export interface Config {
  keyUrl: string;
  lookupUrl: string;
  apiUrl: string;
  texts: Record<string, string>;
}

export interface Message {
  role: "system" | "user" | "assistant";
  content: string;
}

export interface Usage {
  prompt_tokens: number;
  completion_tokens?: number;
}

/** What the ledger says about a request; see `request_lookup`. */
export interface Recorded {
  url: string;
  status: string;
  status_label: string;
  server: string;
  upstream_model: string;
  version: number | null;
  attempts: number;
  input_tokens: number;
  output_tokens: number;
  is_estimated: boolean;
  cost: string | null;
  currency: string;
}

/** An answer that says no, in the gateway's own words. */
export class Refusal extends Error {
  constructor(
    message: string,
    readonly status: number,
    readonly code: string,
    readonly requestId: string,
  ) {
    super(message);
  }
}

type Json = Record<string, unknown>;

const LOOKUP_PAUSE_MS = 400;
const LOOKUP_TRIES = 20;

export class Client {
  #key = "";

  constructor(
    readonly config: Config,
    readonly csrfToken: string,
  ) {}

  /** POST to `path` of the API; a key that has run out is replaced once. Throws Refusal. */
  async post(path: string, body: Json, signal: AbortSignal): Promise<Response> {
    const response = await this.#send(path, body, signal);
    if (response.status !== 401) return await checked(response);
    this.#key = "";
    return await checked(await this.#send(path, body, signal));
  }

  async #send(path: string, body: Json, signal: AbortSignal): Promise<Response> {
    this.#key ||= await this.#newKey();
    return await fetch(this.config.apiUrl + path, {
      method: "POST",
      headers: { Authorization: `Bearer ${this.#key}`, "Content-Type": "application/json" },
      body: JSON.stringify(body),
      credentials: "omit",
      signal,
    });
  }

  async #newKey(): Promise<string> {
    const response = await fetch(this.config.keyUrl, {
      method: "POST",
      headers: { "X-CSRFToken": this.csrfToken },
    });
    if (!response.ok) {
      throw new Refusal(this.config.texts["keyRefused"] ?? "", response.status, "no_key", "");
    }
    return ((await response.json()) as { key: string }).key;
  }

  /** The ledger's record of a request; null when it has not been written after some seconds. */
  async recorded(requestId: string): Promise<Recorded | null> {
    const url = `${this.config.lookupUrl}?request_id=${encodeURIComponent(requestId)}`;
    for (let tries = 0; tries < LOOKUP_TRIES; tries += 1) {
      const response = await fetch(url);
      if (!response.ok) return null;
      const answer = (await response.json()) as Recorded & { found: boolean };
      if (answer.found) return answer;
      await new Promise((resolve) => setTimeout(resolve, LOOKUP_PAUSE_MS));
    }
    return null;
  }
}

export function requestIdOf(response: Response): string {
  return response.headers.get("X-Request-ID") ?? "";
}

async function checked(response: Response): Promise<Response> {
  if (response.ok) return response;
  const body = (await response.json().catch(() => ({}))) as { error?: Json };
  throw refusalOf(body.error ?? {}, response.status, requestIdOf(response));
}

function refusalOf(error: Json, status: number, requestId: string): Refusal {
  const message = String(error["message"] ?? `HTTP ${status}`);
  return new Refusal(message, status, String(error["code"] ?? error["type"] ?? ""), requestId);
}

/** The JSON events of a stream, up to `[DONE]`; returns false when that never came. */
export async function* events(response: Response): AsyncGenerator<Json, boolean> {
  for await (const line of lines(response)) {
    if (!line.startsWith("data:")) continue;
    const data = line.slice(5).trim();
    if (data === "[DONE]") return true;
    const event = JSON.parse(data) as Json;
    if (event["error"]) {
      throw refusalOf(event["error"] as Json, response.status, requestIdOf(response));
    }
    yield event;
  }
  return false;
}

async function* lines(response: Response): AsyncGenerator<string> {
  const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) break;
    const parts = (rest + value).split(/\r?\n/);
    rest = parts.pop() ?? "";
    yield* parts;
  }
  if (rest) yield rest;
}
