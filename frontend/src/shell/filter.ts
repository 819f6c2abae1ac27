/**
 * A filter over rows that are on the page already: `<input data-filter="#fleet">` hides the rows
 * `[data-filter-text]` below `#fleet` that do not hold every typed word. Headings
 * (`tr.group`) without a visible row go as well, `[data-filter-none]` shows when nothing is left.
 */
function apply(input: HTMLInputElement): void {
  const root = document.querySelector(input.dataset.filter!);
  if (!root) return;
  const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
  let shown = 0;
  root.querySelectorAll<HTMLElement>("[data-filter-text]").forEach((row) => {
    const haystack = row.dataset.filterText!.toLowerCase();
    row.hidden = !words.every((word) => haystack.includes(word));
    if (!row.hidden) shown += 1;
  });
  root.querySelectorAll<HTMLElement>("tbody").forEach((body) => {
    const group = body.querySelector<HTMLElement>("tr.group");
    if (group) group.hidden = words.length > 0 && !body.querySelector("[data-filter-text]:not([hidden])");
  });
  const none = root.querySelector<HTMLElement>("[data-filter-none]");
  if (none) none.hidden = shown > 0 || words.length === 0;
}

export function startFilters(): void {
  document.addEventListener("input", (event) => {
    const input = event.target as HTMLInputElement;
    if (input.dataset.filter !== undefined) apply(input);
  });
  document.addEventListener("htmx:afterSettle", () => {
    document.querySelectorAll<HTMLInputElement>("input[data-filter]").forEach(apply);
  });
}
