/** Light, dark or as the system: kept in a cookie for the server, and where Unfold looks for it. */
import { themeChanged } from "../live/colors";

type Theme = "" | "light" | "dark";
const NEXT: Record<Theme, Theme> = { "": "dark", dark: "light", light: "" };
const YEAR_SECONDS = 31_536_000;

export function switchTheme(): void {
  const root = document.documentElement;
  const theme = NEXT[(root.dataset.theme ?? "") as Theme];
  if (theme === "") delete root.dataset.theme;
  else root.dataset.theme = theme;
  document.cookie = `theme=${theme};path=/;max-age=${YEAR_SECONDS};samesite=lax`;
  localStorage.setItem("adminTheme", JSON.stringify(theme || "auto"));
  themeChanged();
}

export function startTheme(): void {
  document.querySelector("[data-theme-switch]")?.addEventListener("click", switchTheme);
}
