/** The playground: a conversation with a route, or one embedding. */
import type {} from "./markdown";
import { Answer, cloned } from "./playground/answer";
import { Client, type Config, events, type Message, Refusal, requestIdOf, type Usage } from "./playground/client";
import { type Body, curl, python } from "./playground/snippets";

// Nearer to the end than this counts as being there.
const FOLLOWING_PX = 60;

type Kind = "chat" | "embedding";
type Render = (text: string) => DocumentFragment;

const form = document.querySelector<HTMLFormElement>("#playground")!;
const log = document.querySelector<HTMLElement>("#conversation")!;
const config = JSON.parse(document.getElementById("playground-config")!.textContent!) as Config;
const csrf = form.querySelector<HTMLInputElement>("[name=csrfmiddlewaretoken]")!.value;
const client = new Client(config, csrf);

let messages: Message[] = [];
let running: AbortController | null = null;
let isFollowing = true;

function field<T extends HTMLElement = HTMLInputElement>(name: string): T {
  return form.elements.namedItem(name) as unknown as T;
}

function button(name: string): HTMLButtonElement {
  return document.querySelector<HTMLButtonElement>(`[data-do="${name}"]`)!;
}

const prompt = field<HTMLTextAreaElement>("prompt");
const route = field<HTMLSelectElement>("route");

function kind(): Kind {
  return form.querySelector<HTMLInputElement>("[name=kind]:checked")!.value as Kind;
}

/** Path and body of the request that `text` would make now. */
function requestOf(text: string): { path: string; body: Body } {
  if (kind() === "embedding") return { path: "/embeddings", body: { model: route.value, input: text } };
  const system = field<HTMLTextAreaElement>("system").value.trim();
  const said: Message[] = [...messages, { role: "user", content: text }];
  const body: Body = {
    model: route.value,
    messages: system ? [{ role: "system", content: system }, ...said] : said,
    stream: true,
    stream_options: { include_usage: true },
  };
  for (const name of ["temperature", "max_tokens"]) {
    const value = field(name).value;
    if (value !== "") body[name] = Number(value);
  }
  return { path: "/chat/completions", body };
}

/** The Markdown bundle's function; plain text when the bundle cannot be had. */
async function loadRender(): Promise<Render> {
  if (!window.renderMarkdown) {
    const script = document.createElement("script");
    script.src = form.dataset["markdownSrc"]!;
    document.head.append(script);
    await new Promise((resolve) => {
      script.onload = script.onerror = resolve;
    });
  }
  return window.renderMarkdown ?? plain;
}

function plain(text: string): DocumentFragment {
  const fragment = document.createDocumentFragment();
  fragment.append(text);
  return fragment;
}

async function send(text: string): Promise<void> {
  const { path, body } = requestOf(text);
  const answer = new Answer(client, await loadRender(), route.value);
  show(text, answer);
  const abort = (running = new AbortController());
  setBusy(true);
  const requestId = await ask(answer, path, body, abort.signal);
  running = null;
  setBusy(false);
  if (path === "/chat/completions") remember(text, answer.text);
  await answer.settle(requestId);
}

/** A question without an answer is forgotten, so that the next one is not confused by it. */
function remember(question: string, answer: string): void {
  if (!answer) return;
  messages.push({ role: "user", content: question }, { role: "assistant", content: answer });
}

/** Send and show; gives the request's id, or "" where none was told. Never throws. */
async function ask(answer: Answer, path: string, body: Body, signal: AbortSignal): Promise<string> {
  let requestId = "";
  try {
    const response = await client.post(path, body, signal);
    requestId = requestIdOf(response);
    answer.went(response.headers.get("x-inferadmin-target") ?? "");
    await (path === "/embeddings" ? readVector(answer, response) : readStream(answer, response));
  } catch (error) {
    requestId = explain(answer, error) || requestId;
  }
  return requestId;
}

async function readVector(answer: Answer, response: Response): Promise<void> {
  const body = (await response.json()) as { data: { embedding: number[] }[]; usage: Usage };
  answer.finish(body.usage);
  answer.showVector(body.data[0]!.embedding);
}

async function readStream(answer: Answer, response: Response): Promise<void> {
  let usage: Usage | null = null;
  const stream = events(response);
  for (;;) {
    const { value, done } = await stream.next();
    if (done) {
      answer.finish(usage);
      if (!value) answer.fail(config.texts["cutOff"]!, "");
      return;
    }
    usage = (value["usage"] as Usage | null | undefined) ?? usage;
    const choices = value["choices"] as { delta?: { content?: string | null } }[] | undefined;
    answer.append(choices?.[0]?.delta?.content ?? "");
  }
}

/** Show what stopped the answer; gives the request's id where the error told it. */
function explain(answer: Answer, error: unknown): string {
  if (error instanceof Refusal) {
    answer.fail(error.message, [error.status, error.code].filter(Boolean).join(" "));
    return error.requestId;
  }
  if (error instanceof DOMException && error.name === "AbortError") answer.stopped();
  else answer.fail(config.texts["unreachable"]!, "");
  return "";
}

function show(question: string, answer: Answer): void {
  document.getElementById("playground-empty")?.setAttribute("hidden", "");
  const bubble = cloned("question-template");
  bubble.querySelector<HTMLElement>('[data-slot="body"]')!.textContent = question;
  isFollowing = true;
  log.append(bubble, answer.element);
}

function setBusy(isBusy: boolean): void {
  button("stop").hidden = !isBusy;
  button("send").hidden = isBusy;
}

function clear(): void {
  running?.abort();
  messages = [];
  log.replaceChildren();
  document.getElementById("playground-empty")?.removeAttribute("hidden");
  prompt.focus();
}

async function copy(name: "curl" | "python"): Promise<void> {
  const { path, body } = requestOf(prompt.value || "Hello!");
  const write = name === "curl" ? curl : python;
  await navigator.clipboard.writeText(write(config.apiUrl, path, body));
  document.getElementById("playground-said")!.textContent = config.texts["copied"]!;
}

/** Keep the end in sight while an answer grows, unless the reader has scrolled up. */
function followEnd(): void {
  log.addEventListener("scroll", () => {
    isFollowing = log.scrollHeight - log.scrollTop - log.clientHeight < FOLLOWING_PX;
  });
  new MutationObserver(() => {
    if (isFollowing) log.scrollTop = log.scrollHeight;
  }).observe(log, { childList: true, subtree: true });
}

/** Take over the kind that the chosen route is for. */
function followRoute(): void {
  const wanted = route.selectedOptions[0]?.dataset["kind"] === "embedding" ? "embedding" : "chat";
  form.querySelector<HTMLInputElement>(`[name=kind][value=${wanted}]`)!.checked = true;
  showKind();
}

function showKind(): void {
  for (const part of form.querySelectorAll<HTMLElement>("[data-only]")) {
    part.hidden = part.dataset["only"] !== kind();
  }
}

form.addEventListener("submit", (event) => {
  event.preventDefault();
  const text = prompt.value.trim();
  if (!text || running) return;
  prompt.value = "";
  void send(text);
});
prompt.addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
  event.preventDefault();
  form.requestSubmit();
});
form.addEventListener("change", (event) => {
  if (event.target === route) followRoute();
  else showKind();
});
button("stop").addEventListener("click", () => running?.abort());
button("clear").addEventListener("click", clear);
button("curl").addEventListener("click", () => void copy("curl"));
button("python").addEventListener("click", () => void copy("python"));
// On a phone the settings would push the conversation off the screen.
if (matchMedia("(max-width: 900px)").matches) form.querySelector("details")!.open = false;
else prompt.focus();
followEnd();
followRoute();
