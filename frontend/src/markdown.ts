/**
 * Markdown to nodes: a bundle of its own, loaded when the first question is sent.
 * What a model says is foreign text: it passes DOMPurify and never `innerHTML`.
 */
import DOMPurify from "dompurify";
import { Marked } from "marked";

const ALLOWED = {
  ALLOWED_TAGS: [
    "a", "b", "blockquote", "br", "code", "del", "em", "h1", "h2", "h3", "h4", "h5", "h6", "hr",
    "i", "li", "ol", "p", "pre", "strong", "table", "tbody", "td", "th", "thead", "tr", "ul",
  ],
  ALLOWED_ATTR: ["href", "title", "start"],
  ALLOWED_URI_REGEXP: /^https?:/i,
};

// HTML in an answer is shown as the text it is. It would be dropped anyway, and browsers report the
// event handlers in it as breaches of the content security policy while it is being parsed.
const markdown = new Marked({
  breaks: true,
  gfm: true,
  renderer: { html: ({ text }) => text.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;") },
});

DOMPurify.addHook("afterSanitizeAttributes", (node) => {
  if (node.tagName !== "A") return;
  node.setAttribute("target", "_blank");
  node.setAttribute("rel", "noopener noreferrer nofollow");
});

declare global {
  interface Window {
    renderMarkdown?: (text: string) => DocumentFragment;
  }
}

window.renderMarkdown = (text) => {
  const html = markdown.parse(text, { async: false });
  return DOMPurify.sanitize(html, { ...ALLOWED, RETURN_DOM_FRAGMENT: true });
};
