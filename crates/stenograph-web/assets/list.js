// The list of sessions: filters as you type, loads more while scrolling, and has keys. The address always says what is shown.

import { all, live, one, parsed, part, say } from "./dom.js";
import { key } from "./keys.js";

/** How long to wait after a key before the list is asked for, in milliseconds. */
const TYPING_MS = 60;

/** @type {AbortController | null} */
let asking = null;

/** The names of the marked sessions: the list may be loaded again. @type {Set<string>} */
const marked = new Set();

function boxes() {
  return all(".row > input").filter((box) => box instanceof HTMLInputElement);
}

/** Marks the sessions of a list that was loaded, and says on the button how many are marked. */
function showMarks() {
  for (const box of boxes()) box.checked = marked.has(box.value);
  const button = /** @type {HTMLButtonElement | null} */ (one(".compare-marked"));
  if (!button) return;
  button.disabled = marked.size !== 2;
  button.textContent = marked.size === 1 ? "Mark another to compare" : "Compare marked";
}

/** Marks or unmarks the selected session. */
function mark() {
  const box = document.activeElement?.closest(".row")?.querySelector("input");
  if (box instanceof HTMLInputElement) box.click();
}

/** The address of the filter form as it is now. */
function address() {
  const form = /** @type {HTMLFormElement} */ (one("#filter"));
  const pairs = new URLSearchParams();
  for (const [name, value] of new FormData(form)) {
    if (typeof value === "string" && value) pairs.set(name, value);
  }
  const text = pairs.toString();
  return text ? `/sessions?${text}` : "/sessions";
}

/**
 * @param {string} place
 */
async function show(place) {
  asking?.abort();
  asking = new AbortController();
  try {
    const html = await part(`${place}${place.includes("?") ? "&" : "?"}part=list`, asking.signal);
    one("#list")?.replaceChildren(parsed(html));
    showMarks();
    say(one("#list .count span")?.textContent ?? "no sessions");
    watchEnd();
  } catch (error) {
    if (!(error instanceof DOMException)) say("the list cannot be read");
  }
}

const observer = new IntersectionObserver((entries) => {
  for (const entry of entries) if (entry.isIntersecting) more(/** @type {HTMLElement} */ (entry.target));
}, { rootMargin: "800px" });

/** Loads more when the end of the list comes near. */
function watchEnd() {
  observer.disconnect();
  const end = one("#list .more");
  if (end) observer.observe(end);
}

/** Adds rows to the list. More hits of a session that is in the list join its row. @param {Iterable<Element>} rows */
function append(rows) {
  const list = one("#list .rows");
  for (const row of [...rows]) {
    const path = one(":scope > a", row)?.getAttribute("href");
    const known = all("#list .rows > .row").find((other) => one(":scope > a", other)?.getAttribute("href") === path);
    const hits = one(".hits", row);
    const place = known && one(".hits", known);
    if (hits && place) place.append(...hits.children);
    else list?.append(row);
  }
}

/** @param {HTMLElement} end */
async function more(end) {
  const link = /** @type {HTMLAnchorElement | null} */ (one("a", end));
  if (!link || end.dataset.busy) return;
  end.dataset.busy = "yes";
  observer.disconnect();
  try {
    const next = parsed(await part(`${link.getAttribute("href")}&part=list`));
    append(one(".rows", next)?.children ?? []);
    const following = one(".more", next);
    if (following) end.replaceWith(following);
    else end.remove();
    showMarks();
    watchEnd();
  } catch {
    delete end.dataset.busy;
  }
}

/** @param {number} step */
export function select(step) {
  const links = all(".rows .row > a, .hits a");
  const at = links.findIndex((link) => link === document.activeElement);
  const next = at < 0 ? (step > 0 ? 0 : links.length - 1) : Math.max(0, Math.min(links.length - 1, at + step));
  links[next]?.focus();
  links[next]?.scrollIntoView({ block: "nearest" });
}

export function startList() {
  key("j", "Next session", () => select(1));
  key("k", "Previous session", () => select(-1));
  key("J", "Five sessions down", () => select(5));
  key("K", "Five sessions up", () => select(-5));
  key("gg", "First session", () => { all(".rows .row > a")[0]?.focus(); scrollTo(0, 0); });
  key("G", "Last loaded session", () => all(".rows .row > a").at(-1)?.focus());
  key("x", "Mark the session", mark);
  key("c", "Compare two marked sessions", () => one(".compare-marked:not(:disabled)")?.click());
  // After the back key, the browser restores the boxes.
  for (const box of boxes()) if (box.checked) marked.add(box.value);
  showMarks();
  one("#marked")?.addEventListener("change", (event) => {
    if (!(event.target instanceof HTMLInputElement)) return;
    if (event.target.checked) marked.add(event.target.value);
    else marked.delete(event.target.value);
    showMarks();
  });
  const form = /** @type {HTMLFormElement | null} */ (one("#filter"));
  if (!form) return;
  const input = /** @type {HTMLInputElement} */ (one("input[type=search]", form));
  // A query that waits for its words.
  if (/^session:.* $/.test(new URLSearchParams(location.search).get("q") ?? "")) {
    input.focus();
    input.setSelectionRange(input.value.length, input.value.length);
  }
  // The list follows every change; only a page without scripts needs the button.
  one(".apply", form)?.remove();
  key("/", "Filter the list", () => input.select());
  let timer = 0;
  const change = () => {
    const place = address();
    history.replaceState(null, "", place);
    show(place);
  };
  input.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(change, TYPING_MS);
  });
  form.addEventListener("change", (event) => {
    if (event.target !== input) change();
  });
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const place = address();
    if (place !== location.pathname + location.search) history.pushState(null, "", place);
    show(place);
    one(".rows a")?.focus();
  });
  addEventListener("popstate", () => location.reload());
  watchEnd();
  // A new session appears in a list that nobody reads further down.
  live("/live", { index: () => { if (scrollY < 200 && !one(".rows a:focus")) show(address()); } });
}
