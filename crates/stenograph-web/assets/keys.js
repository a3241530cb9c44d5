// Keys of all pages. A key in a field belongs to the field; keys with Ctrl, Alt or Meta belong to the browser.

import { one, parsed } from "./dom.js";

/** @typedef {{ keys: string, about: string, run: () => void }} KeyBinding */

/** @type {KeyBinding[]} */
const bindings = [];
let pending = "";
let pendingAt = 0;

/** How long the first letter of two counts, in milliseconds. */
const SEQUENCE_MS = 900;

/**
 * @param {string} keys
 * @param {string} about
 * @param {() => void} run
 */
export function key(keys, about, run) {
  bindings.push({ keys, about, run });
}

/** @param {EventTarget | null} target */
function isField(target) {
  return target instanceof HTMLElement && (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName));
}

/** @param {KeyboardEvent} event */
function pressed(event) {
  if (event.defaultPrevented || event.ctrlKey || event.altKey || event.metaKey || event.isComposing) return;
  if (event.key === "Escape" && isField(event.target)) {
    /** @type {HTMLElement} */ (event.target).blur();
    return;
  }
  if (isField(event.target) || one("dialog[open]")) return;
  const now = Date.now();
  const typed = now - pendingAt < SEQUENCE_MS ? pending + event.key : event.key;
  const found = bindings.find((binding) => binding.keys === typed) ?? bindings.find((binding) => binding.keys === event.key);
  pending = "";
  if (found) {
    event.preventDefault();
    found.run();
  } else if (bindings.some((binding) => binding.keys.length > 1 && binding.keys.startsWith(typed))) {
    event.preventDefault();
    pending = typed;
    pendingAt = now;
  }
}

/** Shows all keys of this page. */
export function help() {
  let dialog = /** @type {HTMLDialogElement | null} */ (one("#keys"));
  if (!dialog) {
    dialog = document.createElement("dialog");
    dialog.id = "keys";
    dialog.setAttribute("aria-labelledby", "keys-title");
    dialog.append(parsed('<form method="dialog"><h2 id="keys-title">Keys</h2><dl></dl><button>Close</button></form>'));
    document.body.append(dialog);
  }
  const list = one("dl", dialog);
  list?.replaceChildren();
  for (const { keys, about } of [...bindings, { keys: "Ctrl K", about: "Find anything" }]) {
    const name = document.createElement("dt");
    const words = document.createElement("dd");
    const label = document.createElement("kbd");
    label.textContent = keys;
    name.append(label);
    words.textContent = about;
    list?.append(name, words);
  }
  dialog.showModal();
  dialog.scrollTop = 0;
}

export function startKeys() {
  document.addEventListener("keydown", pressed);
  key("?", "Show the keys", help);
}
