// The page when something unexpected happens: a gateway that stands still, a change from a shell, many windows, a bad link, no
// clipboard, long names. In a real browser; skipped where there is no Chromium.

import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import type { Browser, Page } from "playwright-core";
import { type DemoUpstream, startDemoUpstream } from "../../harness/upstreams/demo-upstream.ts";
import { run } from "../../cli/driving.ts";
import { type ChildGateway, CREDENTIAL, keyOf, makeConfig, startGateway } from "../../harness/gateway.ts";
import { rawRequest } from "../../harness/raw.ts";
import { makeTempFolder } from "../../harness/temp.ts";
import { createPageTests, hasBrowser, makeLink, openBrowser, openSignedIn } from "../browser.ts";

setDefaultTimeout(120_000);

let browser: Browser;
let upstream: DemoUpstream;
let gateway: ChildGateway;
beforeAll(async () => {
  if (!hasBrowser) return;
  browser = await openBrowser();
  upstream = startDemoUpstream({ credential: CREDENTIAL });
  gateway = await startGateway({ config: makeConfig(upstream) });
});
afterAll(async () => {
  if (!hasBrowser) return;
  await browser.close();
  await gateway.stop();
  upstream.stop();
});

const { onPage, onOwnPage } = createPageTests(() => openSignedIn(browser, gateway));
const shell = (...args: string[]) => run({ folder: gateway.folder.path }, ...args);
const isLive = (page: Page): Promise<void> => page.getByText("live", { exact: true }).waitFor();

const body = (model: string, more: object = {}) => ({
  model,
  max_tokens: 50,
  messages: [{ role: "user", content: "Hello" }],
  ...more,
});
const ask = (model: string) =>
  rawRequest(gateway.port, {
    target: "/v1/messages",
    fields: { "x-api-key": keyOf("messages") },
    body: body(model),
  });

onOwnPage("a gateway that stands still is not called live, until it goes on", async ({ page }) => {
  await page.clock.install();
  await page.reload();
  await isLive(page);
  gateway.signal("SIGSTOP");
  try {
    await page.clock.fastForward(16_000);
    await page.getByText("The gateway does not answer").waitFor();
  } finally {
    gateway.signal("SIGCONT");
  }
  await isLive(page);
});

onPage("what a shell changes is on the page without a request", async ({ page }) => {
  await page.goto(`${gateway.url}/console/keys`);
  await isLive(page);
  expect((await shell("keys", "add", "--name", "from-shell", "--group", "messages")).status).toBe(0);
  const card = page.getByRole("region", { name: "Key from-shell" });
  await card.getByText("active", { exact: true }).waitFor();
  expect((await shell("keys", "disable", "from-shell")).status).toBe(0);
  await card.getByText("disabled", { exact: true }).waitFor();
  expect((await shell("keys", "limit", "from-shell", "usd_per_day=7")).status).toBe(0);
  await card.getByText("of $7.00").waitFor();
  expect((await shell("keys", "remove", "from-shell", "--yes")).status).toBe(0);
  await card.waitFor({ state: "detached" });
});

describe("the address of a request", () => {
  onPage("that is streaming says so, and then what it cost", async ({ page }) => {
    await page.goto(`${gateway.url}/console/requests`);
    await isLive(page);
    upstream.next("stall");
    const leaving = new AbortController();
    const held = await fetch(`${gateway.url}/v1/messages`, {
      method: "POST",
      headers: { "x-api-key": keyOf("messages"), "content-type": "application/json" },
      body: JSON.stringify(body("claude-opus-4-1", { stream: true })),
      signal: leaving.signal,
    });
    const id = held.headers.get("x-request-id");
    const streams = page.getByRole("region", { name: "Open streams" });
    await streams.getByRole("link").click();
    expect(page.url()).toStartWith(`${gateway.url}/console/requests/${id}`);
    const panel = page.getByRole("dialog");
    await panel.getByText("This request is running").waitFor();
    leaving.abort();
    // Nobody may forget it before: a stream that is collected is left.
    expect(held.status).toBe(200);
    await panel.getByText(`Request ${id}`).waitFor();
  });

  onPage(
    "that was refused says that it cost nothing, and one that nobody knows does not",
    async ({ page }) => {
      await page.goto(`${gateway.url}/console/requests/req_unknown`);
      await page.getByText("The ledger has no request with this id").waitFor();
      expect(await page.getByText("cost nothing").count()).toBe(0);
      const target = "/v1/messages";
      const answer = await rawRequest(gateway.port, {
        target,
        fields: { "x-api-key": "sk-wrong" },
        body: {},
      });
      await page.goto(`${gateway.url}/console/requests/${answer.field("x-request-id")}`);
      await page.getByText("so it cost nothing").waitFor();
    },
  );
});

describe("many windows of one browser", () => {
  onPage("show a change of a channel that another one has made", async ({ context, page: first }) => {
    await isLive(first);
    const second = await context.newPage();
    for (const page of [first, second]) await page.goto(`${gateway.url}/console/channels`);
    const find = (page: Page, name: string) =>
      page.getByRole("region", { name: "Channel messages" }).getByRole("button", { name });
    for (const from of [first, second]) {
      for (const [action, opposite] of [
        ["Disable", "Enable"],
        ["Enable", "Disable"],
      ] as const) {
        await find(from, action).click();
        for (const page of [first, second]) await find(page, opposite).waitFor();
      }
    }
    await find(first, "Check now").click();
    for (const page of [first, second]) await page.getByText("available", { exact: true }).waitFor();
  });

  onPage("are signed out and in together", async ({ context, page: first }) => {
    const second = await context.newPage();
    await second.goto(`${gateway.url}/console/keys`);
    await isLive(second);
    await first.getByRole("button", { name: "Sign out" }).click();
    const third = await context.newPage();
    await third.goto(`${gateway.url}/console/keys`);
    for (const page of [first, second, third]) await page.getByText("You are not signed in").waitFor();
    await first.goto(await makeLink(gateway));
    await isLive(first);
    for (const page of [second, third]) {
      await page.getByRole("region", { name: "Key messages" }).waitFor();
      await isLive(page);
    }
  });
});

test.skipIf(!hasBrowser)(
  "a page of an earlier run is loaded again when another one has signed in",
  async () => {
    const folder = makeTempFolder();
    const config = makeConfig(upstream);
    const before = await startGateway({ config, folder });
    const { page, context } = await openSignedIn(browser, before);
    await isLive(page);
    // It gets no answer while the other one signs in.
    await page.evaluate(`const send = window.fetch;
      const held = Promise.withResolvers();
      window.letGo = held.resolve;
      window.fetch = (...call) => held.promise.then(() => send(...call));`);
    await before.stop();
    await page.getByText("This page connects again by itself").waitFor();
    const after = await startGateway({ config: { ...config, listen: { port: before.port } }, folder });
    const other = await context.newPage();
    await other.goto(await makeLink(after));
    await other.getByRole("navigation").waitFor();
    const loaded = page.waitForEvent("load");
    await page.evaluate("window.letGo()");
    await loaded;
    for (const each of [page, other]) await isLive(each);
    await context.close();
    await after.stop();
    folder.remove();
  },
);

onPage("a bad link says why, and leaves the browser signed in", async ({ page }) => {
  await isLive(page);
  await page.goto(`${gateway.url}/console#code=wrong`);
  const problem = page.getByRole("alert").filter({ hasText: "This link is not valid" });
  await problem.getByText("This browser is still signed in").waitFor();
  await page.getByText("as of").first().waitFor();
  await problem.getByRole("button", { name: "Close" }).click();
  await problem.waitFor({ state: "detached" });
});

const makeKey = async (page: Page, name: string): Promise<string> => {
  await page.goto(`${gateway.url}/console/keys/new`);
  await page.getByLabel("Name").fill(name);
  await page.getByRole("button", { name: "Create", exact: true }).click();
  const secret = page.getByText(/^sk-\w{43}$/);
  // Until its dialog is open.
  await secret.waitFor();
  return (await secret.textContent()) ?? "";
};

onOwnPage(
  "a new secret is selected where there is no clipboard, and Escape does not lose it at once",
  async ({ page }) => {
    await page.addInitScript(`Object.defineProperty(navigator, "clipboard", { value: undefined });`);
    const secret = await makeKey(page, "escaped");
    await page.getByRole("button", { name: "Copy the secret" }).click();
    await page.getByRole("button", { name: "Selected: press Ctrl+C" }).waitFor();
    expect(await page.evaluate<string>("getSelection().toString()")).toBe(secret);
    await page.keyboard.press("Escape");
    await page.getByText("Nobody can show this secret again").waitFor();
    await page.getByText(secret, { exact: true }).waitFor();
    await page.keyboard.press("Escape");
    await page.locator("dialog").waitFor({ state: "detached" });
    expect((await page.content()).includes(secret)).toBe(false);
  },
);

onPage("a long name hides no other column", async ({ page }) => {
  const model = `claude-haiku-4-5-${"x".repeat(180)}`;
  await ask(model);
  for (const view of ["/requests", "?period=today&by=model"]) {
    await page.goto(`${gateway.url}/console${view}`);
    await isLive(page);
    if (view !== "/requests") await page.getByText("As a table").click();
    const table = page.getByRole("region", { name: /^Requests$|as a table/ });
    await table.getByTitle(model).first().waitFor();
    // The table beside the chart scrolls. There, a name takes a column like others.
    const fits =
      view === "/requests"
        ? await table.evaluate((each) => each.scrollWidth <= each.clientWidth)
        : await table
            .getByTitle(model)
            .first()
            .evaluate((each) => each.clientWidth <= 240);
    expect([view, fits]).toEqual([view, true]);
  }
});
