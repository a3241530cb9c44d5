// The viewer in a real browser: every screen, its keys, its addresses, and what axe finds. The argument is the link of the server.

import { assert, assertAccessible, open, withBrowser } from "./harness.mjs";

const link = process.argv[2];
const base = new URL(link).origin;

await withBrowser(async (browser) => {
  const { page, seen } = await open(browser, link, { viewport: { width: 1280, height: 900 } });
  await page.waitForURL(`${base}/`);
  await page.waitForSelector("#runs:not([aria-busy])");
  await page.waitForSelector("#spending:not([aria-busy])");
  await assertAccessible(page, "overview");

  // The list: filter as you type, keys, and the address.
  await page.keyboard.press("g");
  await page.keyboard.press("s");
  await page.waitForURL(`${base}/sessions`);
  await assertAccessible(page, "sessions");
  await page.keyboard.press("/");
  await page.keyboard.type("harbour");
  await page.waitForSelector(".hits mark");
  assert.equal(new URL(page.url()).searchParams.get("q"), "harbour");
  await assertAccessible(page, "hits");
  await page.keyboard.press("Enter");
  await page.reload();
  await page.waitForSelector(".hits mark");
  await page.keyboard.press("j");
  await page.keyboard.press("Enter");
  await page.waitForURL(/\/sessions\/hostile-\d/);
  await page.waitForSelector(".outline a");
  await assertAccessible(page, "session");
  await page.goBack();
  await page.waitForSelector(".hits mark");

  // A session: both ends, events, prompts, focus, the outline, and windows that are loaded while scrolling.
  await page.goto(`${base}/sessions/long-1`);
  await page.waitForSelector(".outline a");
  assert.equal(await page.locator("#e400").count(), 0);
  await page.keyboard.press("G");
  await page.waitForSelector("#e400");
  await page.waitForURL(/at=400/);
  await page.keyboard.press("g");
  await page.keyboard.press("g");
  await page.waitForSelector("#e1");
  await page.keyboard.press("j");
  await page.waitForURL(/#e2$/);
  await page.keyboard.press("J");
  await page.waitForURL(/#e3$/);
  await page.keyboard.press("k");
  await page.waitForURL(/#e2$/);
  await page.keyboard.press("f");
  assert.ok(await page.locator(".session.focused").count());
  await page.goto(`${base}/sessions/long-1?at=200#e200`);
  await page.waitForSelector("#e200.here");
  await page.mouse.wheel(0, 20_000);
  await page.waitForSelector("#e300");
  await page.locator(".outline a").first().click();
  await page.waitForSelector("#e1.here");
  const chunks = await page.locator(".chunk").count();
  assert.ok(chunks <= 8, `${chunks} windows`);

  // The address keeps the event and the view, and back returns to the place before a jump.
  await page.goto(`${base}/sessions/long-1?at=200`);
  await page.waitForSelector("#e200.here");
  await page.waitForTimeout(400);
  assert.match(page.url(), /at=200.*#e200$/);
  await page.keyboard.press("f");
  await page.waitForURL(/focused=yes/);
  await page.reload();
  await page.waitForSelector(".session.focused");
  await page.goto(`${base}/sessions/long-1?at=200`);
  await page.waitForSelector("#e200.here");
  await page.waitForSelector(".outline a");
  await page.locator(".outline a").first().click();
  await page.waitForSelector("#e1.here");
  await page.goBack();
  await page.waitForSelector("#e200.here");

  // Marks: the forms of the page are accepted.
  await page.locator(".marks summary").click();
  await page.getByRole("button", { name: "Pin", exact: true }).click();
  await page.locator(".marks summary").click();
  await page.getByRole("button", { name: "Unpin" }).click();
  await page.waitForSelector(".marks");
  await page.goto(`${base}/sessions/long-1`);
  await page.waitForSelector(".outline a");
  await page.keyboard.press("n");
  await page.locator("#note textarea").fill("look here");
  await page.getByRole("dialog").getByRole("button", { name: "Save" }).click();
  await page.waitForSelector(".event-note");
  await assertAccessible(page, "a note");
  await page.locator(".event-note button").click();
  await page.waitForSelector(".event-note", { state: "detached" });

  // Words in one session.
  await page.goto(`${base}/sessions/long-1`);
  await page.waitForSelector(".outline a");
  await page.keyboard.press("s");
  await page.waitForURL(/session%3A/);
  await page.waitForSelector("#filter input:focus");
  await page.keyboard.type("tide");
  await page.waitForSelector(".hits mark, .empty");
  assert.equal(await page.locator("#list .row").count(), await page.locator(".hits mark").count() ? 1 : 0);
  await page.goto(`${base}/sessions/long-1`);

  // Every bar of the usage leads to sessions.
  await page.goto(`${base}/usage?by=model`);
  const bars = page.locator(".bars th a");
  if (await bars.count()) {
    await bars.first().click();
    await page.waitForURL(/by=session/);
    assert.ok(await page.locator(".bars tbody tr").count());
  }

  // Two sessions, marked in the list and compared.
  await page.goto(`${base}/sessions`);
  for (const name of ["hostile-1", "hostile-2"]) {
    await page.locator(`.row:has(input[value=${name}]) > a`).focus();
    await page.keyboard.press("x");
  }
  await page.keyboard.press("c");
  await page.waitForURL(/\/compare\?a=hostile-\d&b=hostile-\d$/);
  await page.goto(`${base}/compare?a=hostile-1&b=hostile-2`);
  await assertAccessible(page, "comparison");
  assert.ok(await page.locator(".difference.changed del, .difference.changed ins").count());
  await page.keyboard.press("j");
  await page.waitForURL(/#c1$/);
  await page.keyboard.press("j");
  await page.keyboard.press("k");
  await page.waitForURL(/#c1$/);
  await page.locator(".difference.same a", { hasText: "Show" }).first().click();
  await page.waitForSelector(".difference.same ul li");
  await assertAccessible(page, "comparison with equal steps");
  await page.locator(".difference.changed .side header a").first().click();
  await page.waitForSelector("#e4");
  await page.goto(`${base}/sessions/long-1`);
  await page.locator(".actions a", { hasText: "Compare" }).click();
  await page.waitForURL(/\/compare\?a=long-1$/);
  await assertAccessible(page, "choice of the second session");
  await page.keyboard.press("j");
  await page.keyboard.press("Enter");
  await page.waitForURL(/a=long-1&b=/);

  // The lanes of the agents: a click leads to the event, h and l change the agent.
  await page.goto(`${base}/sessions/team-1`);
  await page.waitForSelector(".lane svg");
  assert.equal(await page.locator(".lane").count(), 2);
  await assertAccessible(page, "lanes");
  const drawing = page.locator(".lane .drawing").first();
  const { width: laneWidth } = await drawing.boundingBox();
  await drawing.click({ position: { x: laneWidth - 3, y: 5 } });
  await page.waitForURL(/#e5$/);
  await page.waitForSelector(".lane .here:not([hidden])");
  await page.keyboard.press("l");
  await page.waitForURL(/at=6/);
  await page.goBack();
  await page.goto(`${base}/sessions/long-1`);

  // The palette and the help.
  await page.keyboard.press("Control+k");
  await page.keyboard.type("calm");
  await page.waitForSelector("#palette mark");
  await assertAccessible(page, "palette");
  await page.keyboard.press("Escape");
  await page.waitForSelector("#palette", { state: "hidden" });
  await page.keyboard.press("?");
  await page.waitForSelector("#keys[open]");
  await page.keyboard.press("Escape");
  await page.keyboard.press("t");
  await page.waitForSelector(":root[data-theme=dark]");
  await assertAccessible(page, "dark session");

  for (const path of ["/usage", "/usage?by=model", "/sessions/hostile-1/changes", "/sessions/hostile-1/convert", "/sessions?view=tree"]) {
    await page.goto(base + path);
    await assertAccessible(page, path);
  }

  // A phone, and a page at four times its size: nothing is wider than the screen.
  for (const width of [390, 320]) {
    await page.setViewportSize({ width, height: 700 });
    for (const path of ["/", "/sessions", "/sessions/hostile-1", "/usage", "/compare?a=hostile-1&b=hostile-2", "/sessions/team-1",
      "/sessions/hostile-1/changes", "/sessions/hostile-1/convert?to=codex", "/compare?a=hostile-1"]) {
      await page.goto(base + path);
      const wide = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
      assert.ok(wide <= 0, `${path} at ${width}: ${wide} pixels too wide`);
      await page.waitForFunction(() => !document.querySelector("[aria-busy]"));
      assert.equal(await page.evaluate(() => scrollY), 0, `${path} begins at its top`);
    }
  }

  assert.deepEqual(seen.dialogs, []);
  assert.deepEqual(seen.errors, []);
  assert.deepEqual(seen.requests.filter((address) => !address.startsWith(base) && !address.startsWith("data:")), []);
});
