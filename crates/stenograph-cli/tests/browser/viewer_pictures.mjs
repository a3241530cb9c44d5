// The pictures of the viewer for the documentation: `node viewer_pictures.mjs LINK SESSION A B`.

import { assert, assertAccessible, open, picture, withBrowser } from "./harness.mjs";

const [link, session, a, b] = process.argv.slice(2);
const base = new URL(link).origin;

const pictures = [
  ["overview", "/", 1280, "light"],
  ["sessions", "/sessions", 1280, "light"],
  ["session", `/sessions/${session}`, 1280, "light"],
  ["compare", `/compare?a=${a}&b=${b}`, 1280, "light"],
  ["usage", "/usage?by=day", 1280, "light"],
  ["session", `/sessions/${session}`, 1280, "dark"],
  ["session", `/sessions/${session}`, 390, "light"],
];

await withBrowser(async (browser) => {
  const { page, seen } = await open(browser, link, { viewport: { width: 1280, height: 900 } });
  await page.waitForURL(`${base}/`);
  for (const [name, path, width, colorScheme] of pictures) {
    await page.emulateMedia({ colorScheme });
    await page.setViewportSize({ width, height: width < 500 ? 844 : 900 });
    await page.goto(base + path);
    await page.waitForFunction(() => !document.querySelector("[aria-busy]"));
    if (name === "session") await page.waitForSelector(".lane svg");
    await assertAccessible(page, `${name}, ${colorScheme}, ${width} pixels`);
    const wide = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
    assert.ok(wide <= 0, `${name} at ${width}: ${wide} pixels too wide`);
    await picture(page, `viewer-${name}-${width}-${colorScheme}.png`, { isInDocuments: true });
  }
  assert.deepEqual(seen.errors, []);
});
