/** What htmx requests have in common: busy buttons, failures in words. */
import { text } from "./texts";
import { toast } from "./toasts";

interface Failure {
  xhr: XMLHttpRequest;
}

/** The server's own words out of an error part or page; a general sentence when there are none. */
function reasonOf(xhr: XMLHttpRequest): string {
  if (xhr.status === 401) return text("signed_out");
  const page = new DOMParser().parseFromString(xhr.responseText, "text/html");
  return page.querySelector("[data-error]")?.textContent?.trim() || text("failed", xhr.status);
}

function busy(event: Event, isBusy: boolean): void {
  const source = event.target as HTMLElement;
  const button = source.matches("button") ? source : source.querySelector<HTMLElement>("button:not([type=button])");
  if (isBusy) button?.setAttribute("aria-disabled", "true");
  else button?.removeAttribute("aria-disabled");
}

/** Signed out meanwhile: a part answers with the sign-in page, which belongs into the window. */
function leaveIfSignedOut(event: Event): void {
  const { xhr } = (event as CustomEvent<Failure>).detail;
  if (!new URL(xhr.responseURL || location.href).pathname.startsWith("/account/login/")) return;
  event.preventDefault();
  location.reload();
}

export function startRequests(): void {
  const { body } = document;
  body.addEventListener("htmx:beforeSwap", leaveIfSignedOut);
  body.addEventListener("htmx:beforeRequest", (event) => busy(event, true));
  body.addEventListener("htmx:afterRequest", (event) => busy(event, false));
  body.addEventListener("htmx:responseError", (event) => {
    const { xhr } = (event as CustomEvent<Failure>).detail;
    if (isAsked(event)) toast(reasonOf(xhr), "bad");
  });
  body.addEventListener("htmx:sendError", (event) => {
    if (isAsked(event)) toast(text("unreachable"), "bad");
  });
}

/** True for what a person did; parts that refresh by themselves fail quietly and try again. */
function isAsked(event: Event): boolean {
  const { requestConfig } = (event as CustomEvent<{ requestConfig?: { triggeringEvent?: Event } }>).detail;
  const trigger = requestConfig?.triggeringEvent?.type;
  return trigger === "submit" || trigger === "click" || trigger === "change";
}
