// Checks pages that `steno export --to html` wrote: `node page.mjs KIND FILE`.

import { pathToFileURL } from "node:url";
import { assert, assertAccessible, open, picture, withBrowser } from "./harness.mjs";

const [kind, file] = process.argv.slice(2);
const address = pathToFileURL(file).href;
const count = (page, selector) => page.locator(selector).count();
const typed = async (page, text) => {
  await page.keyboard.press("/");
  await page.keyboard.type(text);
};

const kinds = {
  // What a reader can do with a page.
  async page(browser) {
    for (const colorScheme of ["light", "dark"]) {
      for (const width of [390, 1280, 2560]) {
        const { page, seen } = await open(browser, address, { colorScheme, viewport: { width, height: width < 500 ? 844 : 900 } });
        await assertAccessible(page, `${colorScheme}, ${width} pixels, folded`);
        const isInDocuments = ["1280 light", "390 dark"].includes(`${width} ${colorScheme}`);
        await picture(page, `page-${width}-${colorScheme}.png`, { isInDocuments });
        await page.click("#expand");
        await assertAccessible(page, `${colorScheme}, ${width} pixels, expanded`);
        await picture(page, `page-${width}-${colorScheme}-expanded.png`);
        const overflow = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
        assert.ok(overflow <= 0, `${width} pixels: the page is ${overflow} pixels too wide`);
        assert.deepEqual(seen, { requests: [address], dialogs: [], errors: [] });
      }
    }
    const { page } = await open(browser, address, { viewport: { width: 1280, height: 900 } });
    await page.keyboard.press("j");
    assert.equal(await count(page, ".current#e1"), 1);
    await page.keyboard.press("J");
    await page.keyboard.press("K");
    assert.equal(await count(page, "article.user.current"), 1);
    await typed(page, "leap year");
    await page.keyboard.press("Enter");
    await page.waitForFunction(() => / of /.test(document.getElementById("found").textContent));
    assert.equal(await count(page, ".event.current"), 1);
    await page.keyboard.press("Escape");
    await page.keyboard.press("t");
    assert.equal(await page.evaluate(() => document.documentElement.dataset.theme), "dark");
    await page.keyboard.press("?");
    assert.ok(await page.locator("#help").isVisible());
    await page.keyboard.press("Escape");
    assert.ok(await page.locator(".step.thinking").first().isVisible());
    await page.uncheck("#show-thinking");
    assert.ok(!(await page.locator(".step.thinking").first().isVisible()));
    await page.goto(address + "#e5");
    assert.ok(await page.locator("#e5").isVisible(), "the link to a result opens its call");
    await page.pdf();
  },

  // A page without a script is complete, and folds.
  async plain(browser) {
    const { page, seen } = await open(browser, address, { javaScriptEnabled: false });
    assert.ok(await page.locator("article.user").first().isVisible());
    assert.ok(!(await page.locator("#search").isVisible()));
    const call = page.locator("details.call:not([open])").first();
    await call.locator("summary").click();
    assert.equal(await call.count() && (await count(page, "details.call[open]")) > 0, true);
    assert.deepEqual(seen.requests, [address]);
  },

  // Hostile text neither runs nor leaves the page, and does not make it hang.
  async hostile(browser) {
    const { page, seen } = await open(browser, address, { viewport: { width: 1280, height: 900 } });
    await page.check("#show-all");
    await page.click("#expand");
    for (let at = 0; at < 40; at += 1) await page.mouse.wheel(0, 4000);
    await typed(page, "needle");
    await page.keyboard.press("Enter");
    await page.waitForFunction(() => /1 of 1/.test(document.getElementById("found").textContent));
    assert.equal(await count(page, "script"), 1);
    assert.equal(await count(page, "main :is(script, style, iframe, object, embed, form, input, button, svg, link, meta, base, video, audio)"), 0);
    const links = await page.locator("main a").evaluateAll((all) => all.map((a) => a.getAttribute("href")));
    for (const link of links) assert.match(link, /^(#|https?:|mailto:)/);
    const images = await page.locator("main img").evaluateAll((all) => all.map((image) => image.src.slice(0, 22)));
    assert.deepEqual(images, ["data:image/png;base64,"]);
    const attributes = await page.locator("main *").evaluateAll((all) => [...new Set(all.flatMap((element) => element.getAttributeNames()))].sort());
    const allowed = ["alt", "class", "datetime", "href", "id", "loading", "open", "rel", "src", "start", "tabindex"];
    assert.deepEqual(attributes.filter((name) => !allowed.includes(name)), []);
    const text = await page.evaluate(() => document.body.textContent);
    assert.doesNotMatch(text, /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\ufeff]/);
    assert.equal(await page.evaluate(() => globalThis.attacked), undefined);
    assert.deepEqual(seen, { requests: [address], dialogs: [], errors: [] });
  },

  // A large session loads its parts when they are needed.
  async chunks(browser) {
    const { page, seen } = await open(browser, address, { viewport: { width: 1280, height: 900 } });
    await page.waitForSelector("#e1");
    const all = await count(page, ".chunk");
    assert.ok(all > 10, `${all} chunks`);
    assert.ok(await count(page, ".chunk:not(:empty)") < all);
    await picture(page, "chunks-1280.png");
    const last = await page.locator(".chunk").last().getAttribute("data-last");
    await page.goto(address + "#e" + last);
    await page.waitForSelector(`#e${last}`);
    // Every event is in the chunk that the page expects it in.
    for (let at = 1; at < last; at += Math.floor(last / 15)) {
      await page.goto(address + "#e" + at);
      await page.waitForFunction((id) => document.getElementById(id), "e" + at);
    }
    for (let at = 0; at < all; at += Math.ceil(all / 20)) {
      await page.evaluate((chunk) => document.querySelectorAll(".chunk")[chunk].scrollIntoView(), at);
      await page.waitForFunction((chunk) => document.querySelectorAll(".chunk")[chunk].firstChild, at);
    }
    assert.ok(await count(page, ".chunk:not(:empty)") <= 16, "chunks far from the screen are removed");
    await typed(page, "needle");
    await page.keyboard.press("Enter");
    await page.waitForFunction(() => /1 of 1/.test(document.getElementById("found").textContent));
    assert.equal(await count(page, ".event.current"), 1);
    const folder = address.replace(/\.html$/, ".files/");
    for (const request of seen.requests) assert.ok(request.startsWith(address) || request.startsWith(folder), request);
    assert.deepEqual([seen.dialogs, seen.errors], [[], []]);
  },

  // The index of several sessions lists and searches them.
  async index(browser) {
    const { page, seen } = await open(browser, address, { viewport: { width: 1280, height: 900 } });
    await assertAccessible(page, "the index");
    await picture(page, "index-1280.png");
    assert.equal(await count(page, ".sessions li"), 2);
    await typed(page, "leap");
    await page.waitForSelector("#results li");
    await assertAccessible(page, "the results");
    await picture(page, "index-1280-search.png");
    await page.locator("#results a[href*='#']").first().click();
    await page.waitForSelector(".event.current");
    await page.click(".back a");
    await page.waitForSelector(".sessions");
    assert.deepEqual([seen.dialogs, seen.errors], [[], []]);
  },
};

await withBrowser(kinds[kind]);
