/**
 * Dialogs.
 *
 * `<a href="…" data-dialog>`: the page behind the link as a dialog (asked for with `HX-Request`,
 * it answers its form alone); without script it is a page of its own. A form in it that succeeds
 * closes it. `data-confirm="question"` with `data-confirm-action="Revoke"` asks before a form is
 * sent or an htmx request made.
 */
import htmx from "htmx.org";

function element<T extends HTMLElement>(id: string): T | null {
  return document.getElementById(id) as T | null;
}

async function openLink(link: HTMLAnchorElement): Promise<void> {
  const dialog = element<HTMLDialogElement>("dialog");
  if (!dialog) return;
  await htmx.ajax("get", link.href, { source: link, target: dialog, swap: "innerHTML" });
  if (dialog.querySelector("form")) dialog.showModal();
}

function closeAfter(event: Event): void {
  const dialog = (event.target as Element).closest("dialog");
  const { successful } = (event as CustomEvent<{ successful: boolean }>).detail;
  const { requestConfig } = (event as CustomEvent<{ requestConfig: { verb: string } }>).detail;
  if (dialog?.open && successful && requestConfig.verb !== "get") dialog.close();
}

/** Asks `question`; gives true when the person agrees. Cancel has the focus. */
export function confirmed(question: string, action: string): Promise<boolean> {
  const dialog = element<HTMLDialogElement>("confirm")!;
  const [title, ...rest] = question.split("\n");
  dialog.querySelector("h2")!.textContent = title ?? "";
  dialog.querySelector(".body p")!.textContent = rest.join(" ");
  dialog.querySelector("[value=ok]")!.textContent = action;
  dialog.returnValue = "cancel";
  dialog.showModal();
  return new Promise((resolve) => {
    dialog.addEventListener("close", () => resolve(dialog.returnValue === "ok"), { once: true });
  });
}

function asks(source: Element): source is HTMLElement {
  return source instanceof HTMLElement && source.dataset.confirm !== undefined;
}

async function ask(source: HTMLElement, proceed: () => void): Promise<void> {
  if (await confirmed(source.dataset.confirm!, source.dataset.confirmAction ?? "OK")) proceed();
}

export function startDialogs(): void {
  document.addEventListener("click", (event) => {
    const target = event.target as Element;
    const link = target.closest<HTMLAnchorElement>("a[data-dialog]");
    if (link && !event.ctrlKey && !event.metaKey) {
      event.preventDefault();
      void openLink(link);
    }
    const dialog = target.closest("[data-close]")?.closest("dialog");
    if (dialog) {
      event.preventDefault(); // as a page of its own the button is a link back
      dialog.close();
    }
    if (target instanceof HTMLDialogElement) target.close(); // the backdrop
  });
  document.body.addEventListener("htmx:afterRequest", closeAfter);
  document.body.addEventListener("htmx:confirm", (event) => {
    const { elt, issueRequest } = (event as CustomEvent<{ elt: Element; issueRequest: (skip: boolean) => void }>).detail;
    if (!asks(elt)) return;
    event.preventDefault();
    void ask(elt, () => issueRequest(true));
  });
  document.addEventListener("submit", (event) => {
    const form = event.target as HTMLFormElement;
    if (!asks(form) || form.matches("[hx-post], [hx-delete]")) return;
    event.preventDefault();
    void ask(form, () => form.submit());
  });
}
