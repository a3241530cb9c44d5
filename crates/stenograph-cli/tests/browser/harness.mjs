// Opens pages in a real Chromium. Tests in Rust start a script of this folder with Node; a script that ends without an error passes.
//
// STENO_NODE_MODULES names a folder with playwright-core and axe-core, STENO_CHROMIUM the browser. Nothing is downloaded here.

import { createRequire } from "node:module";
import { mkdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import assert from "node:assert/strict";

export { assert };

const modules = createRequire(join(process.env.STENO_NODE_MODULES, "index.js"));
const AXE = readFileSync(modules.resolve("axe-core/axe.min.js"), "utf8");

// Long enough for a busy machine; a page that hangs does not end at all.
const PATIENCE_MS = 120_000;

/** Starts the browser, runs `test` with it, and closes it. */
export async function withBrowser(test) {
  const { chromium } = modules("playwright-core");
  const browser = await chromium.launch({
    executablePath: process.env.STENO_CHROMIUM,
    args: [
      "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
      "--disable-component-update", "--disable-sync",
    ],
  });
  try {
    await test(browser);
  } finally {
    await browser.close();
  }
}

/** Opens an address, and records what the page does: requests, dialogs, errors. `options` are those of a browser context. */
export async function open(browser, address, options = {}) {
  const context = await browser.newContext({ reducedMotion: "reduce", ...options });
  const page = await context.newPage();
  page.setDefaultTimeout(PATIENCE_MS);
  const seen = { requests: [], dialogs: [], errors: [] };
  page.on("request", (request) => seen.requests.push(request.url()));
  page.on("dialog", (dialog) => { seen.dialogs.push(dialog.message()); dialog.dismiss(); });
  page.on("pageerror", (error) => seen.errors.push(String(error)));
  page.on("console", (message) => message.type() === "error" && seen.errors.push(message.text()));
  await page.goto(address);
  return { page, seen, context };
}

/** Fails if axe finds a defect of accessibility. */
export async function assertAccessible(page, about) {
  // The policy of the page allows no script but its own; this one comes from the browser's side.
  await page.evaluate(AXE);
  const { violations } = await page.evaluate(() => globalThis.axe.run(document, { resultTypes: ["violations"] }));
  const found = violations.map((violation) => {
    const places = violation.nodes.slice(0, 3).map((node) => `    ${node.html.slice(0, 160)} ${node.failureSummary.replaceAll("\n", " ").slice(0, 220)}`);
    return `${violation.id}: ${violation.help}\n${places.join("\n")}`;
  });
  assert.equal(found.length, 0, `${about}:\n${found.join("\n")}`);
}

/** Saves a picture of the screen, if the test was asked for pictures. */
export async function picture(page, path) {
  if (!process.env.STENO_PICTURES) return;
  const file = join(process.env.STENO_PICTURES, path);
  mkdirSync(dirname(file), { recursive: true });
  await page.screenshot({ path: file });
}
