// The entry of every page.

import { startCompare } from "./compare.js";
import { live, loadPart, loadParts, one, say, showButtons } from "./dom.js";
import { help, key, startKeys } from "./keys.js";
import { select, startList } from "./list.js";
import { openPalette, startPalette } from "./palette.js";
import { contentsLoaded, startSession } from "./session.js";

function changeTheme() {
  const root = document.documentElement;
  const isDark = (root.dataset.theme ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";
  root.dataset.theme = isDark ? "light" : "dark";
  localStorage.setItem("steno-theme", root.dataset.theme);
  say(`${root.dataset.theme} theme`);
}

const page = document.documentElement.dataset.page ?? "";
if (page !== "login" && page !== "welcome") {
  showButtons();
  startKeys();
  startPalette();
  key("go", "Overview", () => location.assign("/"));
  key("gs", "Sessions", () => location.assign("/sessions"));
  key("gu", "Usage", () => location.assign("/usage"));
  key("t", "Change the theme", changeTheme);
  document.addEventListener("click", (event) => {
    const button = event.target instanceof Element ? event.target.closest("[data-action]") : null;
    const action = button instanceof HTMLElement ? button.dataset.action : "";
    if (action === "theme") changeTheme();
    else if (action === "help") help();
  });
  one(".find input")?.addEventListener("keydown", (event) => {
    if (event instanceof KeyboardEvent && event.key === "ArrowDown") openPalette();
  });
  if (page === "sessions") startList();
  if (page === "session") startSession();
  if (page === "compare") startCompare();
  if (page !== "sessions" && page !== "session") {
    key("/", "Search all sessions", () => /** @type {HTMLInputElement | null} */ (one(".find input"))?.select());
  }
  if (page === "choice") {
    key("j", "Next session", () => select(1));
    key("k", "Previous session", () => select(-1));
  }
  if (page === "overview") {
    key("j", "Next session", () => select(1));
    key("k", "Previous session", () => select(-1));
    live("/live", { index: () => { const runs = one("#runs"); if (runs) loadPart(runs).catch(() => undefined); } });
  }
  loadParts((place) => { if (place.id === "contents" || place.id === "lanes") contentsLoaded(); });
}
