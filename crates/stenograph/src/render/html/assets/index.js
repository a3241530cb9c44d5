// The search over all sessions of an index page. It never makes markup of text.
(() => {
  "use strict";
  const root = document.documentElement, byId = (id) => document.getElementById(id);
  root.classList.add("scripted");
  const stored = (value) => {
    try { return value === undefined ? localStorage.getItem("steno-theme") : localStorage.setItem("steno-theme", value); }
    catch { return null; }
  };
  if (["light", "dark"].includes(stored())) root.dataset.theme = stored();
  byId("theme").addEventListener("click", () => {
    const isDark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = isDark ? "light" : "dark";
    stored(root.dataset.theme);
  });

  const search = byId("search"), found = byId("found"), results = byId("results");
  const sessions = [...document.querySelectorAll(".sessions li")];
  const words = new Map(), waiting = new Map();
  const RESULTS_MAX = 200, AROUND = 90;
  window.stenoWords = (file, items) => { words.set(file, items); waiting.get(file)?.(); waiting.delete(file); };
  const load = (session) => new Promise((resolve) => {
    const file = session.querySelector("a").getAttribute("href");
    if (words.has(file) || !session.dataset.words) return resolve();
    waiting.set(file, resolve);
    const script = document.createElement("script");
    script.src = session.dataset.words;
    script.onload = () => script.remove();
    script.onerror = () => { words.set(file, []); resolve(); };
    document.head.append(script);
  });
  const element = (name, text) => { const made = document.createElement(name); made.textContent = text; return made; };
  // The text around the longest word, with all words marked.
  const excerpt = (text, terms) => {
    const lower = text.toLowerCase(), longest = terms.reduce((one, other) => (other.length > one.length ? other : one));
    const at = lower.indexOf(longest), from = Math.max(0, at - AROUND), to = Math.min(text.length, at + longest.length + AROUND);
    const line = element("p", from ? "…" : "");
    for (let place = from; place < to;) {
      const next = terms.map((term) => [lower.indexOf(term, place), term.length]).filter(([start]) => start >= 0 && start < to);
      const [start, length] = next.sort((one, other) => one[0] - other[0] || other[1] - one[1])[0] ?? [to, 0];
      line.append(text.slice(place, start));
      if (length) line.append(element("mark", text.slice(start, start + length)));
      place = start + Math.max(length, 1);
    }
    line.append(to < text.length ? "…" : "");
    return line;
  };
  let running = 0;
  const run = async () => {
    const mine = ++running, terms = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    results.replaceChildren();
    sessions[0]?.parentElement.toggleAttribute("hidden", terms.length > 0);
    found.textContent = "";
    if (!terms.length) return;
    let count = 0;
    for (const session of sessions) {
      await load(session);
      if (mine !== running) return;
      const anchor = session.querySelector("a"), file = anchor.getAttribute("href");
      const items = [["", session.textContent], ...(words.get(file) || [])];
      for (const [id, text] of items) {
        const lower = text.toLowerCase();
        if (!terms.every((term) => lower.includes(term))) continue;
        if (++count > RESULTS_MAX) continue;
        const item = document.createElement("li"), link = element("a", anchor.textContent);
        link.href = file + (id ? "#" + id : "");
        item.append(link, excerpt(text, terms));
        results.append(item);
      }
      found.textContent = count === 1 ? "1 match" : count + " matches";
    }
  };
  let delay = 0;
  search.addEventListener("input", () => { clearTimeout(delay); delay = setTimeout(run, 150); });
  addEventListener("keydown", (event) => {
    if (event.key === "/" && event.target !== search) { event.preventDefault(); search.focus(); }
    if (event.key === "Escape" && event.target === search) { search.value = ""; run(); }
  });
})();
