/** The menu as a drawer on small screens. */
export function startDrawer(): void {
  const button = document.querySelector<HTMLElement>("[data-drawer]");
  const sidebar = document.getElementById("sidebar");
  if (!button || !sidebar) return;
  const set = (isOpen: boolean): void => {
    document.body.classList.toggle("drawer-open", isOpen);
    button.setAttribute("aria-expanded", String(isOpen));
    if (isOpen) sidebar.querySelector<HTMLElement>("a, button")?.focus();
  };
  button.addEventListener("click", () => set(!document.body.classList.contains("drawer-open")));
  document.addEventListener("click", (event) => {
    const target = event.target as Node;
    if (!sidebar.contains(target) && !button.contains(target)) set(false);
  });
  document.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || !document.body.classList.contains("drawer-open")) return;
    set(false);
    button.focus();
  });
}
