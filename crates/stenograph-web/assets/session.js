// One session: a window of events that moves while scrolling, its outline and map, and new events as they are written. The page
// holds a few windows at most, so a session of any length costs the same.

import { all, live, loadPart, one, parsed, part, say } from "./dom.js";
import { key } from "./keys.js";

/** How many windows of events the page holds. */
const CHUNKS_MAX = 8;

/** @type {HTMLElement} */
let session;
/** @type {HTMLElement} */
let box;
/** The views of a conversation, by their class and their name in the address. */
const VIEWS = ["focused", "all"];
let isFollowing = false;
let isLoading = false;
/** The number of the first event that nobody has seen yet. */
let unread = 0;

/** @param {string} name @param {string | number} value */
function eventsAddress(name, value) {
  const pairs = new URLSearchParams({ [name]: String(value) });
  if (session.dataset.agent) pairs.set("agent", session.dataset.agent);
  return `${session.dataset.path}/events?${pairs}`;
}

function chunks() {
  return all(".chunk", box);
}

/** The events that can be selected, in order. */
function events() {
  return all(".event", box).filter((event) => event.offsetParent !== null);
}

function barHeight() {
  return (one(".bar")?.offsetHeight ?? 0) + 8;
}

/** The event at the top of the screen. */
function current() {
  const top = barHeight() + 4;
  const list = events();
  let low = 0;
  let high = list.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (list[middle].getBoundingClientRect().bottom > top) high = middle;
    else low = middle + 1;
  }
  return list[low];
}

/** @param {HTMLElement | undefined} event */
function numberOf(event) {
  return Number(event?.id.match(/e(\d+)$/)?.[1] ?? 0);
}

/**
 * Changes the list of windows without moving what the reader looks at.
 * @param {() => void} change
 */
function keepPlace(change) {
  const event = current();
  const before = event?.getBoundingClientRect().top ?? 0;
  change();
  if (event?.isConnected) scrollBy(0, event.getBoundingClientRect().top - before);
}

/** @param {"prev" | "next"} direction */
async function extend(direction) {
  const list = chunks();
  const edge = direction === "prev" ? list[0] : list.at(-1);
  const link = edge && one(`.more a[rel=${direction}]`, edge);
  if (!edge || !link || isLoading) return;
  isLoading = true;
  try {
    const from = direction === "prev" ? eventsAddress("before", edge.dataset.from ?? 1) : eventsAddress("from", edge.dataset.next ?? 1);
    const chunk = one(".chunk", parsed(await part(from)));
    if (!chunk) return;
    keepPlace(() => {
      link.closest(".more")?.remove();
      if (direction === "prev") {
        one(".more a[rel=next]", chunk)?.closest(".more")?.remove();
        edge.before(chunk);
      } else {
        one(".more a[rel=prev]", chunk)?.closest(".more")?.remove();
        edge.after(chunk);
      }
      trim(direction);
      joinDays();
    });
  } catch {
    say("the events cannot be read");
  } finally {
    isLoading = false;
    requestAnimationFrame(watch);
  }
}

/** A window begins with its day. Where the day is that of the window before, the line goes. */
function joinDays() {
  let before = "";
  for (const day of all(".day", box)) {
    if (day.textContent === before) day.remove();
    before = day.textContent ?? "";
  }
}

/** Removes the window that is farthest away. @param {"prev" | "next"} direction */
function trim(direction) {
  const list = chunks();
  if (list.length <= CHUNKS_MAX) return;
  const gone = direction === "prev" ? list.at(-1) : list[0];
  const edge = direction === "prev" ? list.at(-2) : list[1];
  gone?.remove();
  if (!edge) return;
  const rel = direction === "prev" ? "next" : "prev";
  const more = document.createElement("p");
  more.className = "more";
  const link = document.createElement("a");
  link.rel = rel;
  link.href = eventsAddress(rel === "next" ? "from" : "before", (rel === "next" ? edge.dataset.next : edge.dataset.from) ?? 1);
  link.textContent = rel === "next" ? "Later events" : "Earlier events";
  more.append(link);
  if (rel === "next") {
    delete edge.dataset.last;
    edge.append(more);
  } else edge.prepend(more);
}

const observer = new IntersectionObserver((entries) => {
  for (const entry of entries) {
    const rel = /** @type {HTMLAnchorElement} */ (one("a", entry.target))?.rel;
    if (entry.isIntersecting && (rel === "prev" || rel === "next")) extend(rel);
  }
}, { rootMargin: "1500px 0px" });

function watch() {
  observer.disconnect();
  for (const more of all(".chunk > .more", box)) observer.observe(more);
  where();
}

/**
 * Shows another part of the session.
 * @param {string} name @param {string | number} value
 */
async function jump(name, value) {
  isLoading = true;
  observer.disconnect();
  try {
    box.replaceChildren(parsed(await part(eventsAddress(name, value))));
  } finally {
    isLoading = false;
  }
}

/**
 * Goes to an event, which may not be loaded yet.
 * @param {number} number
 */
async function goTo(number) {
  if (!number) return;
  const place = () => document.getElementById(`e${number}`) ?? nearest(number);
  const loaded = chunks().some((chunk) => Number(chunk.dataset.from) <= number && number < Number(chunk.dataset.next));
  if (!loaded) await jump("at", number);
  const event = place();
  for (let parent = event?.parentElement; parent && parent !== box; parent = parent.parentElement) {
    if (parent instanceof HTMLDetailsElement) parent.open = true;
  }
  mark(event);
  requestAnimationFrame(watch);
}

/** The last event before a number that is not shown itself. @param {number} number */
function nearest(number) {
  return events().filter((event) => numberOf(event) <= number).at(-1);
}

/** @param {HTMLElement | null | undefined} event */
function mark(event) {
  for (const old of all(".event.here", box)) old.classList.remove("here");
  if (!event) return;
  event.classList.add("here");
  event.scrollIntoView({ block: "start" });
  const focusable = one("summary, a.n", event) ?? event;
  focusable.focus({ preventScroll: true });
  remember(numberOf(event));
}

/** The address of an event in this conversation, as it is shown now. @param {number} number @param {string} [agent] */
function addressOf(number, agent = session.dataset.agent) {
  const pairs = new URLSearchParams({ at: String(number) });
  if (agent) pairs.set("agent", agent);
  for (const name of VIEWS) if (session.classList.contains(name)) pairs.set(name, "yes");
  return `${session.dataset.path}?${pairs}#e${number}`;
}

/** Writes the place into the address, so that reload and back return to it. @param {number} number */
function remember(number) {
  if (number) history.replaceState(null, "", addressOf(number));
}

/** The event that the reader is at: the marked one while it can be seen, else the one at the top of the screen. */
function eventHere() {
  const marked = one(".event.here", box);
  return marked && isVisible(marked) ? marked : current();
}

/** Goes to an event that the reader chose, so that back returns to the place before. @param {number} number */
function leap(number) {
  history.pushState(null, "", addressOf(number));
  goTo(number);
}

/** @param {number} step @param {string} selector */
async function move(step, selector) {
  const from = eventHere();
  // What is not loaded yet may have the next one; some windows have none.
  for (let windows = 0; windows <= CHUNKS_MAX; windows += 1) {
    const list = events().filter((event) => event.matches(selector) || event === from);
    const next = list[(from ? list.indexOf(from) : -1) + step];
    if (next && next !== from) return mark(next);
    const count = chunks().map((chunk) => chunk.dataset.from).join();
    await extend(step > 0 ? "next" : "prev");
    if (count === chunks().map((chunk) => chunk.dataset.from).join()) return undefined;
  }
  return undefined;
}

/** @param {HTMLElement} event */
function isVisible(event) {
  const { top, bottom } = event.getBoundingClientRect();
  return bottom > 0 && top < innerHeight;
}

async function toEnd() {
  if (!chunks().at(-1)?.hasAttribute("data-last")) await jump("at", "end");
  scrollTo(0, document.documentElement.scrollHeight);
  const last = events().at(-1);
  if (last) {
    last.classList.add("here");
    remember(numberOf(last));
  }
  requestAnimationFrame(watch);
}

async function toStart() {
  if (chunks()[0]?.dataset.from !== "1") await jump("from", 1);
  scrollTo(0, 0);
  requestAnimationFrame(watch);
}

/** Marks the outline and the map with the place on the screen. */
function where() {
  const event = current();
  const number = numberOf(event) || Number(chunks()[0]?.dataset.from ?? 1);
  const links = all(".outline a[data-event]");
  const active = links.filter((link) => Number(link.dataset.event) <= number).at(-1);
  for (const link of links) {
    if (link === active) link.setAttribute("aria-current", "location");
    else link.removeAttribute("aria-current");
  }
  // Only the outline itself scrolls: on a phone it is part of the page, which stays where the reader is.
  const scroller = active && all(".outline, .outline ol").find((list) => list.scrollHeight > list.clientHeight + 1 && getComputedStyle(list).overflowY === "auto");
  if (active && scroller) {
    const [link, list] = [active.getBoundingClientRect(), scroller.getBoundingClientRect()];
    if (link.top < list.top) scroller.scrollTop -= list.top - link.top;
    else if (link.bottom > list.bottom) scroller.scrollTop += link.bottom - list.bottom;
  }
  const map = one(".map");
  const here = map && one(".here", map);
  if (map && here) {
    const total = Number(map.dataset.events) || 1;
    here.hidden = false;
    here.style.top = `${Math.min(99, ((number - 1) / total) * 100)}%`;
  }
  markLane(number);
}

/** The event at a place of a lane. @param {HTMLElement} lane @param {number} share from 0 to 1 */
function eventOfLane(lane, share) {
  const numbers = (one("svg", lane)?.dataset.events ?? "").split(" ");
  return Number(numbers[Math.min(numbers.length - 1, Math.max(0, Math.floor(share * numbers.length)))]) || 1;
}

/** Marks the lane of this conversation with the place on the screen. @param {number} number */
function markLane(number) {
  for (const lane of all(".lane")) {
    const here = one(".here", lane);
    const isCurrent = one("a[aria-current]", lane);
    if (!here || !isCurrent) continue;
    const numbers = (one("svg", lane)?.dataset.events ?? "").split(" ").map(Number);
    const column = numbers.findLastIndex((first) => first > 0 && first <= number);
    here.hidden = false;
    here.style.left = `${(Math.max(0, numbers.indexOf(numbers[column])) / numbers.length) * 100}%`;
  }
}

/** Opens the conversation of another agent. @param {number} step */
function changeAgent(step) {
  const links = all(".agents a");
  const at = links.findIndex((link) => link.hasAttribute("aria-current"));
  links[at + step]?.click();
}

/** New events were written. */
async function grown() {
  const last = chunks().at(-1);
  if (!last?.hasAttribute("data-last")) return;
  const wasAtEnd = innerHeight + scrollY > document.documentElement.scrollHeight - 120;
  const chunk = one(".chunk", parsed(await part(eventsAddress("from", last.dataset.next ?? 1))));
  if (!chunk || !one(".event", chunk)) return;
  one(".more a[rel=prev]", chunk)?.closest(".more")?.remove();
  if (!unread && (document.hidden || !isFollowing)) {
    unread = Number(chunk.dataset.from);
    one(".unread", box)?.remove();
    const line = document.createElement("p");
    line.className = "unread";
    line.textContent = "New events";
    chunk.prepend(line);
  }
  last.removeAttribute("data-last");
  last.after(chunk);
  trim("next");
  joinDays();
  say("new events");
  if (isFollowing && wasAtEnd) {
    scrollTo(0, document.documentElement.scrollHeight);
    if (!document.hidden) unread = 0;
  }
  watch();
}

/** @param {string} action @param {boolean} [value] */
function toggle(action, value) {
  const button = one(`[data-action=${action}]`);
  const next = value ?? button?.getAttribute("aria-pressed") !== "true";
  button?.setAttribute("aria-pressed", String(next));
  return next;
}

/** @param {boolean} value */
function follow(value) {
  isFollowing = toggle("follow", value);
  say(isFollowing ? "following new events" : "not following");
  if (isFollowing) toEnd();
}

function focusMode() {
  keepPlace(() => session.classList.toggle("focused", toggle("focus")));
  remember(numberOf(eventHere()));
}

function allEvents() {
  keepPlace(() => session.classList.toggle("all", toggle("all")));
  remember(numberOf(eventHere()));
}

/** Shows the conversation as the address says. */
function applyViews() {
  const pairs = new URLSearchParams(location.search);
  for (const name of VIEWS) session.classList.toggle(name, toggle(name === "focused" ? "focus" : name, pairs.has(name)));
}

/** Opens the form for a note about the event on the screen. */
function writeNote() {
  const dialog = /** @type {HTMLDialogElement | null} */ (one("#note"));
  const number = numberOf(eventHere());
  const field = /** @type {HTMLInputElement | null} */ (dialog && one("[name=event]", dialog));
  const shown = dialog && one("output", dialog);
  if (!dialog || !field || !shown || !number) return;
  field.value = String(number);
  shown.textContent = String(number);
  dialog.showModal();
  one("textarea", dialog)?.focus();
}

export function startSession() {
  const found = one(".session");
  const place = one("#window");
  if (!found || !place) return;
  [session, box] = [found, place];
  key("j", "Next event", () => move(1, ".event"));
  key("k", "Previous event", () => move(-1, ".event"));
  key("J", "Next prompt", () => move(1, ".event.user"));
  key("K", "Previous prompt", () => move(-1, ".event.user"));
  key("o", "Open or close the event", () => { const event = one(".event.here", box); if (event instanceof HTMLDetailsElement) event.open = !event.open; });
  key("[", "Newer session", () => one("[data-neighbour=prev]")?.click());
  key("]", "Older session", () => one("[data-neighbour=next]")?.click());
  key("h", "Previous agent", () => changeAgent(-1));
  key("l", "Next agent", () => changeAgent(1));
  key("gg", "First event", toStart);
  key("G", "Last event", toEnd);
  key("f", "Focus: only messages", focusMode);
  key("a", "All events, also bookkeeping", allEvents);
  key("F", "Follow new events", () => follow(!isFollowing));
  key("n", "Write a note about the event", writeNote);
  key("s", "Search in this session", () => one("[data-find]")?.click());
  key("/", "Search all sessions", () => /** @type {HTMLInputElement | null} */ (one(".find input"))?.select());
  document.addEventListener("click", (event) => {
    const target = event.target instanceof Element ? event.target : null;
    const button = target?.closest("[data-action]");
    const action = button instanceof HTMLElement ? button.dataset.action : "";
    if (action === "follow") follow(!isFollowing);
    else if (action === "focus") focusMode();
    else if (action === "all") allEvents();
    else if (action === "note") writeNote();
    else if (action === "copy") navigator.clipboard.writeText(/** @type {HTMLElement} */ (button).dataset.copy ?? "").then(() => say("copied"));
    const more = target?.closest(".chunk > .more a");
    const link = target?.closest(".session-grid a[href*='#e']");
    if (more instanceof HTMLAnchorElement) {
      event.preventDefault();
      extend(more.rel === "prev" ? "prev" : "next");
    } else if (link instanceof HTMLAnchorElement && link.pathname === session.dataset.path && !event.ctrlKey && !event.metaKey) {
      event.preventDefault();
      leap(Number(link.hash.slice(2)));
    }
    const drawing = target?.closest(".lane .drawing");
    const lane = drawing?.closest(".lane");
    if (drawing && lane instanceof HTMLElement) {
      const { left, width } = drawing.getBoundingClientRect();
      const number = eventOfLane(lane, (event.clientX - left) / width);
      if ((lane.dataset.agent ?? "") === (session.dataset.agent ?? "")) leap(number);
      else location.assign(addressOf(number, lane.dataset.agent ?? ""));
    }
    const map = target?.closest(".map");
    if (map instanceof HTMLElement) {
      const share = (event.clientY - map.getBoundingClientRect().top) / map.clientHeight;
      leap(Math.max(1, Math.round(share * Number(map.dataset.events))));
    }
  });
  addEventListener("popstate", () => {
    applyViews();
    goTo(Number(location.hash.slice(2)) || 1);
  });
  let timer = 0;
  addEventListener("scroll", () => {
    clearTimeout(timer);
    timer = setTimeout(() => { where(); remember(numberOf(eventHere())); }, 150);
  }, { passive: true });
  const pairs = new URLSearchParams({ session: session.dataset.session ?? "" });
  if (session.dataset.agent) pairs.set("agent", session.dataset.agent);
  let stale = 0;
  live(`/live?${pairs}`, {
    grown: () => {
      grown();
      clearTimeout(stale);
      stale = setTimeout(refreshContents, 3000);
    },
  });
  applyViews();
  const at = new URLSearchParams(location.search).get("at");
  const asked = Number(location.hash.startsWith("#e") ? location.hash.slice(2) : at);
  if (at === "end" && !location.hash) { scrollTo(0, document.documentElement.scrollHeight); watch(); }
  else if (asked > 0) goTo(asked);
  else watch();
}

async function refreshContents() {
  const place = one("#contents");
  if (!place) return;
  await loadPart(place).catch(() => undefined);
  const lanes = one("#lanes");
  if (lanes) await loadPart(lanes).catch(() => undefined);
  where();
}

export function contentsLoaded() {
  where();
}
