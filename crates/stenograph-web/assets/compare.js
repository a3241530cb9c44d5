// Two sessions side by side: keys go from difference to difference and from page to page.

import { all, one } from "./dom.js";
import { key } from "./keys.js";

/** @param {number} step */
function move(step) {
  const list = all(".difference:not(.same)");
  const at = list.findIndex((difference) => difference.classList.contains("here"));
  const next = list[at < 0 ? (step > 0 ? 0 : list.length - 1) : at + step];
  if (!next) {
    one(step > 0 ? ".pages a[rel=next]" : ".pages a[rel=prev]")?.click();
    return;
  }
  list[at]?.classList.remove("here");
  next.classList.add("here");
  next.scrollIntoView({ block: "nearest" });
  one("a", next)?.focus({ preventScroll: true });
  history.replaceState(null, "", `${location.pathname}${location.search}#${next.id}`);
}

export function startCompare() {
  key("j", "Next difference", () => move(1));
  key("k", "Previous difference", () => move(-1));
  key("[", "Earlier differences", () => one(".pages a[rel=prev]")?.click());
  key("]", "Later differences", () => one(".pages a[rel=next]")?.click());
  const linked = location.hash.startsWith("#c") ? document.getElementById(location.hash.slice(1)) : null;
  linked?.classList.add("here");
}
