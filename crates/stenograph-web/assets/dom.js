// Small helpers around the document. Text never becomes markup here: only answers of this server do.

/**
 * @param {string} selector
 * @param {ParentNode} [root]
 * @returns {HTMLElement | null}
 */
export function one(selector, root = document) {
  return root.querySelector(selector);
}

/**
 * @param {string} selector
 * @param {ParentNode} [root]
 * @returns {HTMLElement[]}
 */
export function all(selector, root = document) {
  return [...root.querySelectorAll(selector)].filter((found) => found instanceof HTMLElement);
}

/**
 * The HTML of a part of a page. It is escaped by the server.
 * @param {string} address
 * @param {AbortSignal} [signal]
 * @returns {Promise<string>}
 */
export async function part(address, signal) {
  const answer = await fetch(address, { signal, headers: { Accept: "text/html" } });
  if (!answer.ok) throw new Error(`the server answered ${answer.status}`);
  return answer.text();
}

/**
 * @param {string} html
 * @returns {DocumentFragment}
 */
export function parsed(html) {
  const template = document.createElement("template");
  // eslint-disable-next-line no-restricted-properties -- the one place where markup of the server becomes elements
  template.innerHTML = html;
  return template.content;
}

/**
 * Tells people who do not see the page what happened.
 * @param {string} text
 */
export function say(text) {
  let region = one("#said");
  if (!region) {
    region = document.createElement("p");
    region.id = "said";
    region.className = "visually-hidden";
    region.setAttribute("role", "status");
    document.body.append(region);
  }
  region.textContent = text;
}

/** Shows the buttons that need a script. */
export function showButtons() {
  for (const button of all("button[hidden][data-action]")) button.hidden = false;
}

/**
 * Loads the parts of a page that take longer.
 * @param {(loaded: HTMLElement) => void} [done]
 */
export function loadParts(done) {
  for (const place of all("[data-load]")) loadPart(place).then(() => done?.(place), () => undefined);
}

/**
 * @param {HTMLElement} place
 */
export async function loadPart(place) {
  const address = place.dataset.load ?? "";
  try {
    const html = await part(address);
    place.replaceChildren(parsed(html));
  } catch (error) {
    const message = document.createElement("p");
    message.className = "muted";
    message.textContent = `Cannot be read: ${error instanceof Error ? error.message : error}`;
    place.replaceChildren(message);
    throw error;
  } finally {
    place.removeAttribute("aria-busy");
  }
}

/**
 * Follows the changes that the server reports.
 * @param {string} address
 * @param {Record<string, () => void>} handlers
 * @returns {EventSource}
 */
export function live(address, handlers) {
  const source = new EventSource(address);
  for (const [name, handler] of Object.entries(handlers)) source.addEventListener(name, handler);
  return source;
}
