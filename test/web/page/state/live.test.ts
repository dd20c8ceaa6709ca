// What the page makes of the live feed, in a real browser: late frames, late answers, and a page that nobody sees.

import { afterAll, afterEach, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import type { Browser, BrowserContext, Page, Route } from "playwright-core";
import { type InsideGateway, makeConfig, startGatewayHere } from "../../../harness/gateway.ts";
import { hasBrowser, openBrowser } from "../../browser.ts";

setDefaultTimeout(120_000);
const PATIENCE_MS = 60_000;

let browser: Browser;
let context: BrowserContext;
let gateway: InsideGateway;
beforeAll(async () => {
  if (!hasBrowser) return;
  browser = await openBrowser();
  context = await browser.newContext();
  context.setDefaultTimeout(PATIENCE_MS);
  gateway = startGatewayHere({ config: makeConfig({ url: "http://127.0.0.1:9" }), console: true });
});
afterAll(async () => {
  if (!hasBrowser) return;
  await browser.close();
  await gateway.stop();
});

afterEach(async () => {
  if (hasBrowser) for (const page of context.pages()) await page.close();
});

/** `script` runs before the page's own. `answer` gets each request of the page for the live feed. */
async function openPage({
  script = "",
  answer,
}: {
  readonly script?: string;
  readonly answer?: (route: Route) => void;
}): Promise<Page> {
  const page = await context.newPage();
  await page.addInitScript(script);
  if (answer !== undefined) await page.route("**/console/api/live", answer);
  await page.goto(gateway.running.console?.createLink() ?? "");
  await page.getByRole("navigation").waitFor();
  return page;
}

const readState = (page: Page): Promise<string | null> => page.getByRole("status").first().textContent();

/** As when the user changes to another tab and back. */
const setHidden = (page: Page, hidden: boolean): Promise<void> =>
  page.evaluate(`Object.defineProperty(document, "hidden", { value: ${hidden}, configurable: true });
    document.dispatchEvent(new Event("visibilitychange"));`);

/** The first connection gets what the test gives it, and does not notice that it was given up. `firstBegun`: the page
 *  waits for it. */
const FIRST_IS_OURS = `
  const send = window.fetch;
  const first = Promise.withResolvers();
  const begun = Promise.withResolvers();
  window.firstBegun = begun.promise;
  let count = 0;
  window.fetch = (url, init) => {
    if (!String(url).endsWith("/live")) return send(url, init);
    begun.resolve();
    count += 1;
    return count === 1 ? first.promise : send(url, init);
  };
  let events;
  const answer = new Response(new ReadableStream({ start: (controller) => void (events = controller) }));
  window.sendFirst = (event) => {
    events.enqueue(new TextEncoder().encode("data: " + JSON.stringify(event) + "\\n\\n"));
    first.resolve(answer);
  };
  window.refuseFirst = () =>
    first.resolve({ ok: false, status: 401, json: async () => ({ error: "not signed in" }) });`;

/** Keeps back what waits for the next frame or for a time, while the test says so. */
const HELD_FRAMES = `
  const held = [];
  for (const name of ["requestAnimationFrame", "setTimeout"]) {
    const real = window[name].bind(window);
    window[name] = (...call) => (window.isHolding ? held.push(() => real(...call)) : real(...call));
  }
  window.letGo = () => {
    window.isHolding = false;
    for (const call of held.splice(0)) call();
  };`;

test.skipIf(!hasBrowser)("a change before the first frame of the live view is shown", async () => {
  const page = await openPage({ script: `${FIRST_IS_OURS}${HELD_FRAMES}` });
  await page.evaluate("window.sendFirst({ streams: [], requests: [] })");
  await page.getByText("live", { exact: true }).waitFor();
  await page.evaluate("window.isHolding = true");
  await page.getByRole("navigation").getByRole("link", { name: "Requests" }).click();
  await page.getByText("Counting …").waitFor();
  const stream = { id: "req_1", key: "k", model: "m", channel: "messages", since: 0, tokens: 0 };
  await page.evaluate(`window.sendFirst({ streams: [${JSON.stringify(stream)}] })`);
  await page.evaluate("window.letGo()");
  await page.getByRole("region", { name: "Open streams" }).getByText("messages").waitFor();
});

test.skipIf(!hasBrowser)("a page that is seen again says that it is connecting until it is", async () => {
  const held: Route[] = [];
  let holds = false;
  const page = await openPage({
    answer: (route) => (holds ? void held.push(route) : void route.continue()),
  });
  await page.getByText("live", { exact: true }).waitFor();
  holds = true;
  await setHidden(page, true);
  expect(await readState(page)).toBe("connecting");
  const again = page.waitForRequest("**/console/api/live");
  await setHidden(page, false);
  await again;
  expect(await readState(page)).toBe("connecting");
  holds = false;
  for (const route of held) await route.continue();
  await page.getByText("live", { exact: true }).waitFor();
});

test.skipIf(!hasBrowser)("a page that is opened where nobody sees it connects when it is seen", async () => {
  let connections = 0;
  const page = await openPage({
    script: `Object.defineProperty(document, "hidden", { value: true, configurable: true });`,
    answer: (route) => {
      connections += 1;
      void route.continue();
    },
  });
  // The overview is loaded after the feed is started.
  await page.locator(".as-of").waitFor();
  expect([connections, await readState(page)]).toEqual([0, "connecting"]);
  await setHidden(page, false);
  await page.getByText("live", { exact: true }).waitFor();
});

test.skipIf(!hasBrowser)("a late refusal of a connection that was given up does not sign out", async () => {
  const page = await openPage({ script: FIRST_IS_OURS });
  await page.evaluate("window.firstBegun");
  await setHidden(page, true);
  await setHidden(page, false);
  await page.getByText("live", { exact: true }).waitFor();
  await page.evaluate("window.refuseFirst()");
  expect(await readState(page)).toBe("live");
  expect(await page.evaluate(`localStorage.getItem("gateway-console")`)).toBeString();
});

test.skipIf(!hasBrowser)("a late event of a connection that was given up changes nothing", async () => {
  const page = await openPage({ script: FIRST_IS_OURS });
  await page.evaluate("window.firstBegun");
  await setHidden(page, true);
  await page.evaluate("window.sendFirst({ streams: [], requests: [] })");
  expect(await readState(page)).toBe("connecting");
});

test.skipIf(!hasBrowser)("the refusal of an older sign-in does not end that of another tab", async () => {
  const page = await openPage({ script: FIRST_IS_OURS });
  await page.evaluate("window.firstBegun");
  const other = await context.newPage();
  await other.goto(gateway.running.console?.createLink() ?? "");
  await other.getByRole("navigation").waitFor();
  await page.evaluate("window.refuseFirst()");
  for (const each of [page, other]) await each.getByText("live", { exact: true }).waitFor();
});
