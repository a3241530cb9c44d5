// The keys, the search and the outline of a page. The page works without this script; it never makes markup of text.
(() => {
  "use strict";
  const root = document.documentElement, main = document.getElementById("conversation");
  const byId = (id) => document.getElementById(id);
  root.classList.add("scripted");

  // The theme: the reader's choice, or that of the system.
  const stored = (value) => {
    try { return value === undefined ? localStorage.getItem("steno-theme") : localStorage.setItem("steno-theme", value); }
    catch { return null; }
  };
  if (["light", "dark"].includes(stored())) root.dataset.theme = stored();
  const changeTheme = () => {
    const isDark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = isDark ? "light" : "dark";
    stored(root.dataset.theme);
  };
  byId("theme").addEventListener("click", changeTheme);

  // On a narrow screen the conversation comes first.
  if (matchMedia("(max-width: 1180px)").matches) document.querySelector("aside.summary > details").open = false;
  if (matchMedia("(max-width: 800px)").matches) document.querySelector("nav.outline > details").open = false;

  // Chunks of a large session: loaded near the screen, removed far away from it.
  const chunks = [...main.querySelectorAll(":scope > .chunk")];
  const waiting = new Map();
  const KEPT = 6, EVENT_HEIGHT = 34;
  let shown = [];
  window.stenoChunk = (number, html) => { waiting.get(number)?.(html); waiting.delete(number); };
  const source = (chunk) => new Promise((resolve, reject) => {
    const number = Number(chunk.dataset.number), before = waiting.get(number);
    waiting.set(number, (html) => { before?.(html); resolve(html); });
    if (before) return;
    const script = document.createElement("script");
    script.src = chunk.dataset.source;
    script.onload = () => script.remove();
    script.onerror = () => { script.remove(); waiting.delete(number); reject(new Error("a file of this page is missing: " + chunk.dataset.source)); };
    document.head.append(script);
  });
  const show = async (chunk) => {
    shown = [...shown.filter((other) => other !== chunk), chunk];
    if (chunk.firstChild) return;
    try {
      // The file holds markup that Stenograph wrote, in which every text is escaped.
      const html = await source(chunk);
      if (!chunk.firstChild) chunk.innerHTML = html;
    } catch (error) { chunk.textContent = error.message; }
    chunk.style.minHeight = "";
    for (const far of shown.slice(0, Math.max(0, shown.length - KEPT))) {
      far.style.minHeight = far.offsetHeight + "px";
      far.replaceChildren();
    }
    shown = shown.slice(-KEPT);
  };
  if (chunks.length) {
    const near = new IntersectionObserver((entries) => entries.forEach((entry) => entry.isIntersecting && show(entry.target)), { rootMargin: "1500px" });
    for (const chunk of chunks) {
      chunk.style.minHeight = Math.max(1, chunk.dataset.events) * EVENT_HEIGHT + "px";
      near.observe(chunk);
    }
  }
  const chunkOf = (id) => {
    const [, prefix, number] = /^(.*?)e(\d+)$/.exec(id) || [];
    return chunks.find((chunk) => chunk.dataset.prefix === prefix && Number(chunk.dataset.first) <= number && number <= Number(chunk.dataset.last));
  };

  // Going to an event: it is loaded, opened and marked.
  const open = (element) => { for (let at = element; at; at = at.parentElement) if (at.localName === "details") at.open = true; };
  let current = null;
  const goTo = (element, block = "center") => {
    if (!element) return;
    open(element.parentElement);
    current?.classList.remove("current");
    current = element.closest(".event") || element;
    current.classList.add("current");
    root.classList.add("jump");
    element.scrollIntoView({ block });
    root.classList.remove("jump");
  };
  const goToId = async (id) => {
    const chunk = byId(id) ? null : chunkOf(id);
    if (chunk) await show(chunk);
    const element = byId(id);
    if (element) { if (element.localName === "details" || element.closest("details")) open(element); goTo(element, "start"); }
  };
  const fromHash = () => { const id = decodeURIComponent(location.hash.slice(1)); if (id && id !== "conversation") goToId(id); };
  addEventListener("hashchange", fromHash);
  if (location.hash) fromHash();

  // Links: the number of a folded event copies its link.
  const link = (element) => location.href.split("#")[0] + "#" + element.id;
  const copy = (element) => {
    if (!element?.id) return;
    history.replaceState(null, "", "#" + element.id);
    navigator.clipboard?.writeText(link(element)).then(() => say("link copied"), () => {});
  };
  main.addEventListener("click", (event) => {
    const number = event.target.closest("span.n");
    if (number) { event.preventDefault(); copy(number.closest(".event")); }
  });

  // The outline follows the page.
  const links = new Map([...document.querySelectorAll("nav.outline ol a")].map((a) => [a.hash.slice(1), a]));
  let marked = null;
  const mark = () => {
    let last = null;
    for (const prompt of main.querySelectorAll("article.user:not(.side), .compaction")) {
      if (prompt.getBoundingClientRect().top > innerHeight / 3) break;
      last = prompt;
    }
    const now = last && links.get(last.id);
    if (now === marked) return;
    marked?.removeAttribute("aria-current");
    now?.setAttribute("aria-current", "true");
    if (now && matchMedia("(min-width: 801px)").matches) now.scrollIntoView({ block: "nearest" });
    marked = now;
  };
  let frame = 0;
  addEventListener("scroll", () => { frame ||= requestAnimationFrame(() => { frame = 0; mark(); }); }, { passive: true });
  mark();

  // The timeline leads to the events below the pointer.
  const timeline = document.querySelector("svg.timeline");
  timeline?.addEventListener("click", (event) => {
    const box = timeline.getBoundingClientRect(), ids = timeline.dataset.ids.split(" ");
    const id = ids[Math.min(ids.length - 1, Math.floor((event.clientX - box.left) / box.width * ids.length))];
    if (id) location.hash = id;
  });

  // Search: counts the matches, and steps through them.
  const search = byId("search"), found = byId("found");
  const say = (text) => { found.textContent = text; };
  const PART_MS = 12, FOUND_MAX = 5000;
  let matches = [], at = -1, running = 0, texts = new WeakMap();
  const textOf = (element) => {
    let text = texts.get(element);
    if (text === undefined) texts.set(element, text = element.textContent.toLowerCase());
    return text;
  };
  const pause = () => new Promise((resolve) => setTimeout(resolve));
  const highlight = (words) => {
    if (!globalThis.Highlight) return;
    CSS.highlights.delete("found");
    if (!words || at < 0) return;
    const element = byId(matches[at]), ranges = [];
    const walk = document.createTreeWalker(element, NodeFilter.SHOW_TEXT);
    for (let node = walk.nextNode(); node && ranges.length < 500; node = walk.nextNode()) {
      const text = node.data.toLowerCase();
      for (let from = text.indexOf(words); from >= 0 && ranges.length < 500; from = text.indexOf(words, from + words.length)) {
        const range = new Range();
        range.setStart(node, from);
        range.setEnd(node, Math.min(node.data.length, from + words.length));
        ranges.push(range);
      }
    }
    CSS.highlights.set("found", new Highlight(...ranges));
  };
  const run = async () => {
    const words = search.value.trim().toLowerCase(), mine = ++running;
    matches = []; at = -1; highlight("");
    if (!words) return say("");
    let started = performance.now();
    const look = async (events) => {
      for (const element of events) {
        if (matches.length < FOUND_MAX && element.id && textOf(element).includes(words)) matches.push(element.id);
        if (performance.now() - started > PART_MS) {
          say(matches.length + " so far");
          await pause();
          if (mine !== running) return;
          started = performance.now();
        }
      }
    };
    if (!chunks.length) await look(main.querySelectorAll(".event"));
    // The words as a chunk spells them: most chunks do not have them, and need not be parsed.
    const spelled = words.replace(/[&<>"']/g, (char) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;" })[char]);
    for (const chunk of chunks) {
      if (mine !== running) return;
      const html = chunk.firstChild ? null : await source(chunk).catch(() => "");
      if (mine !== running) return;
      if (html !== null && !html.replace(/<[^>]*>/g, "").toLowerCase().includes(spelled)) continue;
      // An inert document: nothing in it loads or runs.
      const holder = html === null ? chunk : new DOMParser().parseFromString(html, "text/html");
      await look(holder.querySelectorAll(".event"));
    }
    if (mine !== running) return;
    const count = matches.length >= FOUND_MAX ? FOUND_MAX + " or more" : matches.length;
    say(matches.length === 1 ? "1 event" : count + " events");
  };
  const step = async (by) => {
    if (!matches.length) return;
    at = (at + by + matches.length) % matches.length;
    await goToId(matches[at]);
    open(byId(matches[at]));
    highlight(search.value.trim().toLowerCase());
    say(at + 1 + " of " + matches.length);
  };
  let delay = 0;
  search.addEventListener("input", () => { clearTimeout(delay); delay = setTimeout(run, 150); });
  search.addEventListener("keydown", async (event) => {
    if (event.key === "Enter") { event.preventDefault(); clearTimeout(delay); if (at < 0) await run(); step(event.shiftKey ? -1 : 1); }
    if (event.key === "Escape") { search.value = ""; run(); search.blur(); }
  });

  // Colours of code: ranges over the text, which itself stays as it is.
  const TOKENS = new RegExp([
    /(?<comment>\/\*[^]*?\*\/|(?<![:\w])\/\/.*|(?<![\w$&"'])#(?![[!]).*|^\s*--\s.*)/,
    /(?<string>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.){0,200}'|`(?:[^`\\]|\\.){0,2000}`)/,
    /(?<number>\b\d[\w.]*)/,
    /(?<keyword>\b(?:abstract|as|async|await|break|case|catch|class|const|continue|def|defer|del|do|done|elif|else|enum|esac|except|export|extends|extern|false|fi|finally|fn|for|from|func|function|go|if|impl|implements|import|in|interface|is|lambda|let|loop|match|mod|mut|new|nil|None|not|null|or|and|package|pass|private|protected|pub|public|raise|ref|return|Self|self|static|struct|super|switch|then|this|throw|trait|true|True|False|try|type|typeof|undefined|unsafe|use|var|void|where|while|with|yield)\b)/,
  ].map((part) => part.source).join("|"), "gm");
  const CODE_LENGTH_MAX = 50_000;
  if (globalThis.Highlight && globalThis.IntersectionObserver) {
    const colours = Object.fromEntries(["comment", "string", "number", "keyword"].map((name) => [name, new Highlight()]));
    for (const [name, ranges] of Object.entries(colours)) CSS.highlights.set("code-" + name, ranges);
    const colour = (code) => {
      const node = code.firstChild;
      if (node?.nodeType !== Node.TEXT_NODE || node.data.length > CODE_LENGTH_MAX) return;
      for (const token of node.data.matchAll(TOKENS)) {
        const name = Object.keys(colours).find((name) => token.groups[name] !== undefined);
        const range = new StaticRange({ startContainer: node, startOffset: token.index, endContainer: node, endOffset: token.index + token[0].length });
        colours[name].add(range);
      }
    };
    const visible = new IntersectionObserver((entries) => {
      for (const entry of entries.filter((entry) => entry.isIntersecting)) { visible.unobserve(entry.target); colour(entry.target); }
    }, { rootMargin: "300px" });
    const watch = (root) => root.querySelectorAll("code[class]").forEach((code) => visible.observe(code));
    watch(main);
    new MutationObserver((changes) => changes.forEach((change) => change.addedNodes.forEach((node) => node.querySelectorAll && watch(node))))
      .observe(main, { childList: true, subtree: true });
  }

  // Folding.
  let isExpanded = false;
  const expand = () => {
    isExpanded = !isExpanded;
    for (const details of main.querySelectorAll("details.event")) details.open = isExpanded;
    byId("expand").textContent = isExpanded ? "Fold all" : "Expand all";
  };
  byId("expand").addEventListener("click", expand);
  addEventListener("beforeprint", () => { if (!isExpanded) for (const details of main.querySelectorAll("details.call, details.compaction")) details.open = true; });

  // Keys.
  const help = byId("help");
  byId("keys").addEventListener("click", () => help.showModal());
  const move = (selector, by) => {
    const all = [...main.querySelectorAll(selector)].filter((element) => element.checkVisibility());
    if (!all.length) return;
    let index = all.indexOf(current);
    if (index < 0) {
      const top = current?.isConnected ? current.getBoundingClientRect().top : 60;
      const after = all.findIndex((element) => element.getBoundingClientRect().top > top + 1);
      index = by > 0 ? (after < 0 ? all.length : after) - 1 : after < 0 ? all.length : after;
    }
    const next = all[Math.min(all.length - 1, Math.max(0, index + by))];
    goTo(next);
    history.replaceState(null, "", next.id ? "#" + next.id : location.href);
  };
  const PROMPT = "article.user:not(.side)", EVENT = "article.event, .steps > .event, .compaction";
  const keys = {
    j: () => move(EVENT, 1), k: () => move(EVENT, -1), J: () => move(PROMPT, 1), K: () => move(PROMPT, -1),
    o: () => { if (current?.localName === "details") current.open = !current.open; },
    e: expand, t: changeTheme, y: () => copy(current), "/": () => search.focus(), "?": () => help.showModal(),
    n: () => step(1), N: () => step(-1),
  };
  addEventListener("keydown", (event) => {
    const isTyping = event.target.closest?.("input[type=search], textarea, select, dialog[open]");
    if (isTyping || event.ctrlKey || event.metaKey || event.altKey || !keys[event.key]) return;
    event.preventDefault();
    keys[event.key]();
  });
})();
