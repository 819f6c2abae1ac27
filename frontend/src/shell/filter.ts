/**
 * A filter over rows that are on the page already. `<input data-filter="#fleet">` hides the rows
 * `[data-filter-text]` below `#fleet` that do not hold every typed word; a button
 * `data-filter-states="loading unloading"` in the same card those whose `data-state` is none of
 * these. A heading (`tbody.group`) without a visible row goes as well, `[data-filter-none]` shows
 * when nothing is left.
 */
interface Wish {
  words: string[];
  states: string[];
}

function wishOf(root: Element): Wish {
  const input = root.querySelector<HTMLInputElement>("input[data-filter]");
  const chip = root.querySelector<HTMLElement>('[data-filter-states][aria-pressed="true"]');
  const split = (words: string): string[] => words.toLowerCase().split(/\s+/).filter(Boolean);
  return { words: split(input?.value ?? ""), states: split(chip?.dataset.filterStates ?? "") };
}

function fits(row: HTMLElement, { words, states }: Wish): boolean {
  const haystack = row.dataset.filterText!.toLowerCase();
  return words.every((word) => haystack.includes(word)) && (states.length === 0 || states.includes(row.dataset.state ?? ""));
}

function hideEmptyGroups(root: Element, isNarrowed: boolean): void {
  let group: HTMLElement | null = null;
  root.querySelectorAll<HTMLElement>("tbody").forEach((body) => {
    if (body.classList.contains("group")) {
      group = body;
      body.hidden = isNarrowed;
    } else if (group && !body.hidden) {
      group.hidden = false;
    }
  });
}

function apply(root: Element): void {
  const wish = wishOf(root);
  const isNarrowed = wish.words.length + wish.states.length > 0;
  let shown = 0;
  root.querySelectorAll<HTMLElement>("[data-filter-text]").forEach((row) => {
    row.hidden = !fits(row, wish);
    if (!row.hidden) shown += 1;
  });
  hideEmptyGroups(root, isNarrowed);
  const none = root.querySelector<HTMLElement>("[data-filter-none]");
  if (none) none.hidden = shown > 0 || !isNarrowed;
}

function press(chip: HTMLElement, root: Element): void {
  root.querySelectorAll("[data-filter-states]").forEach((other) => {
    other.setAttribute("aria-pressed", String(other === chip));
  });
  apply(root);
}

export function startFilters(): void {
  document.addEventListener("input", (event) => {
    const { filter } = (event.target as HTMLElement).dataset;
    const root = filter ? document.querySelector(filter) : null;
    if (root) apply(root);
  });
  document.addEventListener("click", (event) => {
    const chip = (event.target as Element).closest<HTMLElement>("[data-filter-states]");
    const root = chip?.closest(".card");
    if (chip && root) press(chip, root);
  });
  // Rows that came meanwhile are filtered as well; chips that were swapped keep the choice.
  document.addEventListener("htmx:afterSettle", () => {
    document.querySelectorAll<HTMLInputElement>("input[data-filter]").forEach((input) => {
      const root = document.querySelector(input.dataset.filter!);
      if (root) apply(root);
    });
  });
}
