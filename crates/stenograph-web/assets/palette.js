// The palette: sessions and places in them, as you type.

import { all, one, parsed, part, say } from "./dom.js";

/** @type {AbortController | null} */
let asking = null;
/** @type {HTMLDialogElement | null} */
let dialog = null;

function made() {
  const found = document.createElement("dialog");
  found.id = "palette";
  found.setAttribute("aria-label", "Find anything");
  found.append(
    parsed(
      '<input type="search" role="combobox" aria-expanded="true" aria-controls="palette-list" aria-label="Find anything" placeholder="Find a session, or words in all sessions" autocomplete="off" spellcheck="false"><div id="palette-list"></div>',
    ),
  );
  document.body.append(found);
  const input = /** @type {HTMLInputElement} */ (one("input", found));
  input.addEventListener("input", () => ask(input.value));
  found.addEventListener("keydown", (event) => move(event));
  found.addEventListener("click", (event) => {
    if (event.target === found) found.close();
  });
  return found;
}

/** @param {string} words */
async function ask(words) {
  asking?.abort();
  asking = new AbortController();
  try {
    const html = await part(`/palette?q=${encodeURIComponent(words)}`, asking.signal);
    const list = one("#palette-list");
    list?.replaceChildren(parsed(html));
    const links = all("a", list ?? document);
    links[0]?.classList.add("selected");
    say(`${links.length} results`);
  } catch (error) {
    if (!(error instanceof DOMException)) say("the search failed");
  }
}

/** @param {KeyboardEvent} event */
function move(event) {
  if (event.key === "Escape") {
    // A search field would only be emptied.
    event.preventDefault();
    dialog?.close();
    return;
  }
  const links = all("#palette-list a");
  const at = links.findIndex((link) => link.classList.contains("selected"));
  if (event.key === "ArrowDown" || event.key === "ArrowUp") {
    event.preventDefault();
    const next = event.key === "ArrowDown" ? Math.min(at + 1, links.length - 1) : Math.max(at - 1, 0);
    links[at]?.classList.remove("selected");
    links[next]?.classList.add("selected");
    links[next]?.scrollIntoView({ block: "nearest" });
  } else if (event.key === "Enter" && event.target instanceof HTMLInputElement) {
    event.preventDefault();
    links[Math.max(at, 0)]?.click();
  }
}

export function openPalette() {
  dialog ??= made();
  if (!dialog.open) dialog.showModal();
  const input = /** @type {HTMLInputElement} */ (one("input", dialog));
  input.select();
  ask(input.value);
}

export function startPalette() {
  document.addEventListener("keydown", (event) => {
    if ((event.ctrlKey || event.metaKey) && !event.altKey && event.key.toLowerCase() === "k") {
      event.preventDefault();
      openPalette();
    }
  });
}
