// Tests the page in a real browser, on the real gateway as users run it. The tests are skipped where there is no Chromium.

import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { readFileSync, unlinkSync, writeFileSync } from "node:fs";
import type { Browser, BrowserContextOptions, Page } from "playwright-core";
import { z } from "zod";
import { encodeLine, GENESIS, hashLine } from "../../src/billing/ledger/line.ts";
import { type DemoUpstream, startDemoUpstream } from "../harness/upstreams/demo-upstream.ts";
import {
  type ChildGateway,
  CREDENTIAL,
  keyOf,
  makeConfig,
  startGateway,
  type TestConfig,
} from "../harness/gateway.ts";
import { rawRequest } from "../harness/raw.ts";
import { makeTempFolder, type TempFolder } from "../harness/temp.ts";
import { draftOf } from "../billing/ledger/ledger-samples.ts";
import { createPageTests, hasBrowser, makeLink, openBrowser, openSignedIn, type Visit } from "./browser.ts";
import { PROGRAM } from "../harness/program.ts";
import { writeHtml } from "../../src/web/report-file.ts";

setDefaultTimeout(120_000);
const AXE = readFileSync(Bun.resolveSync("axe-core/axe.min.js", import.meta.dir), "utf8");

let browser: Browser;
let upstream: DemoUpstream;
let folder: TempFolder;
let gateway: ChildGateway;

const channel = (priority: number) => ({
  platform: "messages",
  base_url: upstream.url,
  credential: CREDENTIAL,
  priority,
});

/** A key with which each session may send one request. */
const SHORT_KEY = {
  name: "short",
  group: "messages",
  secret: "sk-test-short",
  limits: { usd_per_session: "0.00001" },
};

/** The channel whose base URL is a port at which nothing listens. */
const GONE = { platform: "messages", base_url: "http://127.0.0.1:9", credential: CREDENTIAL };

function writeConfig(port = 0): TestConfig {
  return {
    ...makeConfig(upstream),
    listen: { port },
    channels: { ...makeConfig(upstream).channels, messages: channel(1), spare: channel(2), gone: GONE },
    keys: [...makeConfig(upstream).keys, SHORT_KEY],
    groups: {
      ...makeConfig(upstream).groups,
      messages: {
        platform: "messages",
        multiplier: "1",
        channels: ["messages", "spare"],
        description: "At cost",
      },
    },
  };
}

beforeAll(async () => {
  if (!hasBrowser) return;
  browser = await openBrowser();
  upstream = startDemoUpstream({ credential: CREDENTIAL });
  folder = makeTempFolder();
  writeSession(folder.join("ledger.jsonl"));
  gateway = await startGateway({ config: { ...writeConfig() }, folder });
});
afterAll(async () => {
  if (!hasBrowser) return;
  await browser.close();
  await gateway.stop();
  upstream.stop();
  folder.remove();
});

const TREE = "5e55104a-0000-4000-8000-000000000001";

/** A session of an agent with a subagent of a subagent, each with a prompt that the cache missed. */
function writeSession(path: string): void {
  const agents = [{}, { agent: "search" }, { agent: "fetch", parent: "search" }];
  let prev = GENESIS;
  const lines = agents.map((agent, index) => {
    const line = encodeLine(
      draftOf(`req_tree_${index}`, {
        time: new Date(Date.now() - 60_000 * (3 - index)).toISOString(),
        key: "earlier",
        client: { tool: "claude-code", session: TREE, label: "orchard", ...agent },
        cache: { missed: 110_022, usd: "0.41", because: "tools_changed" },
      }),
      prev,
    );
    prev = hashLine(line);
    return `${line}\n`;
  });
  writeFileSync(path, lines.join(""), { mode: 0o600 });
}

const signIn = (options: BrowserContextOptions = {}, at = gateway): Promise<Visit> =>
  openSignedIn(browser, at, options);
const { onPage } = createPageTests(signIn);

async function openView(page: Page, name: string): Promise<void> {
  await page.getByRole("navigation").getByRole("link", { name }).click();
}

/** Returns the row of a key in the page's list of keys. */
function rowOfKey(page: Page, name: string) {
  const names = page.getByRole("rowheader", { name, exact: true });
  return page.getByRole("region", { name: "Keys" }).getByRole("row").filter({ has: names });
}

/** The fields of `gateway ledger show --json` that the drawer of a request shows. */
const documentSchema = z.object({
  sha256: z.string(),
  line: z.object({ prev: z.string(), charge_usd: z.string() }),
  passes: z.array(z.object({ amounts: z.array(z.object({ price: z.string(), usd: z.string() })) })),
});

const NAMED = /"?name"?: ?"?content"?/;

const QUESTION = { max_tokens: 50, messages: [{ role: "user", content: "Hello" }] };

function ask(secret: string, model = "claude-haiku-4-5", at = gateway) {
  return rawRequest(at.port, {
    target: "/v1/messages",
    fields: { "x-api-key": secret },
    body: { model, ...QUESTION },
  });
}

async function listViolations(page: Page): Promise<string[]> {
  if (!(await page.evaluate("'axe' in globalThis"))) await page.evaluate(AXE);
  return page.evaluate(async () => {
    const { violations } = await Reflect.get(globalThis, "axe").run();
    return violations.map(
      ({ id, nodes }: { id: string; nodes: { html: string }[] }) =>
        `${id}: ${nodes.map(({ html }) => html).join(" ")}`,
    );
  });
}

onPage(
  "P184: a sign-in link leaves no code in the address, and the page stays signed in after a reload",
  async ({ page, context, problems, requested }) => {
    expect(page.url()).toBe(`${gateway.url}/console`);
    await page.reload();
    await page.getByText("as of").first().waitFor();
    const own = requested.filter((url) => url.startsWith(`${gateway.url}/console`));
    expect(own).toHaveLength(requested.length);
    expect(requested.filter((url) => url.includes("code="))).toEqual([]);
    const again = await context.newPage();
    await again.goto(`${gateway.url}/console/channels`);
    await again.getByRole("heading", { name: "spare" }).waitFor();
    expect(problems).toEqual([]);
  },
);

test.skipIf(!hasBrowser)("P182: a used sign-in link fails, and the page says how to go on", async () => {
  const link = await makeLink(gateway);
  const context = await browser.newContext();
  const first = await context.newPage();
  await first.goto(link);
  await first.getByRole("navigation").waitFor();
  const second = await (await browser.newContext()).newPage();
  await second.goto(link);
  await second.getByText("used this link first").waitFor();
  await second.getByText(`gateway open --url ${gateway.url}`, { exact: true }).waitFor();
  expect(await listViolations(second)).toEqual([]);
  await first.reload();
  await first.getByText("You are not signed in").waitFor();
  await context.close();
});

onPage("P185: the page adds a channel, and says how to enable a disabled one", async ({ page }) => {
  await openView(page, "Channels");
  await page.getByRole("link", { name: "Add a channel" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("Upstream").selectOption("another address …");
  await dialog.getByLabel("URL").fill(upstream.url);
  await dialog.getByLabel("Name").fill("from-page");
  expect(await listViolations(page)).toEqual([]);
  const add = () => dialog.getByRole("button", { name: "Check and add" }).click();
  await add();
  await dialog.getByText("wants a credential").waitFor();
  await dialog.getByLabel("Credential").fill(CREDENTIAL);
  await add();
  await page.getByText("Added from-page.").waitFor();
  await page.getByRole("heading", { name: "from-page" }).waitFor();
  const read = (name: string) => readFileSync(folder.join(name), "utf8");
  expect(read("gateway.yaml")).toContain("${GATEWAY_FROM_PAGE_API_KEY}");
  expect(read("gateway.env")).toContain(`FROM_PAGE_API_KEY=${CREDENTIAL}`);
  const change = (words: string) =>
    Bun.spawnSync([...PROGRAM, ...words.split(" ").slice(1), "--config", gateway.configPath]);
  change("gateway channels set from-page disabled=true");
  const card = page.getByRole("region", { name: "Channel from-page" });
  const advice = (await card.locator("code").textContent()) ?? "";
  expect(await card.getByRole("button").allTextContents()).toEqual(["Check now from-page"]);
  change(advice);
  await card.getByRole("button", { name: "Disable" }).waitFor();
});

onPage("P186: a channel's state is one word on its card, in the overview and the shell", async ({ page }) => {
  await page.goto(`${gateway.url}/console/channels?channel=gone`);
  await page.getByRole("button", { name: "Check now" }).click();
  // The channel's cooldown is over.
  const card = page.getByRole("region", { name: "Channel gone" });
  await card.getByText("tried again with the next request").waitFor();
  await card.getByText("unavailable", { exact: true }).waitFor();
  await openView(page, "Overview");
  const line = page.getByRole("region", { name: "Status" }).getByRole("listitem").filter({ hasText: "gone" });
  await line.getByText("is unavailable: ").waitFor();
  const words = [...PROGRAM, "channels", "--config", gateway.configPath];
  expect(Bun.spawnSync(words).stdout.toString()).toMatch(/^gone .* unavailable /m);
});

onPage("a button saves the file of `gateway report`", async ({ page, problems }) => {
  await ask(keyOf("messages"));
  await page.getByText("as of").first().waitFor();
  const waiting = page.waitForEvent("download");
  await page.getByRole("button", { name: "Save a report" }).click();
  const download = await waiting;
  expect(download.suggestedFilename()).toMatch(/^gateway-report-\d{4}-\d\d-\d\d-\d{6}\.html$/);
  const text = readFileSync(await download.path(), "utf8");
  expect(text).toContain("claude-haiku-4-5");
  expect(text).not.toContain("from-page");
  // The command may replace a report that the page has written.
  const words = ["report", "-o", await download.path(), "--ledger", folder.join("ledger.jsonl")];
  expect(Bun.spawnSync([...PROGRAM, ...words]).exitCode).toBe(0);
  expect(problems).toEqual([]);
});

onPage("a report with all its rows opens without a network, and prints on two pages", async ({ context }) => {
  const words = ["report", "--json", "--ledger", folder.join("ledger.jsonl")];
  const report = JSON.parse(Bun.spawnSync([...PROGRAM, ...words]).stdout.toString());
  const id = { id: "req_1", upstream_request_id: "req_011CSHoEeqs5C35K2UU2", time: report.first };
  const changed = "no cause found: the upstream may have lost the cache";
  const event = { ...id, tool: "claude-code", version: "2.1.332", changed, tokens: 1000, usd: "1" };
  const rows = (count: number) => Array.from({ length: count }, () => ({ ...report.models[0], ...event }));
  const full = { ...report, events: rows(12), causes: rows(8), versions: rows(8), models: rows(8) };
  writeFileSync(folder.join("full.html"), writeHtml(full));
  const page = await context.newPage();
  const requested: string[] = [];
  page.on("request", (request) => requested.push(request.url()));
  await page.goto(`file://${folder.join("full.html")}`);
  const pdf = (await page.pdf({ format: "A4" })).toString("latin1");
  expect(pdf.match(/\/Type\s*\/Page\b/g)).toHaveLength(2);
  expect(requested).toHaveLength(1);
});

onPage(
  "P184, P186: a key is created, used, seen live, and its charge is explained",
  async ({ page, problems }) => {
    await openView(page, "Keys");
    await page.getByRole("link", { name: "Create a key" }).click();
    expect(page.url()).toBe(`${gateway.url}/console/keys/new`);
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel("Name").fill("from-page");
    const choices = await dialog.getByLabel("Group").locator("option").allTextContents();
    expect(choices).toContain("messages — messages, ×1 — At cost");
    await dialog.getByLabel("Group").selectOption("messages");
    await dialog.getByLabel("USD per day").fill("5");
    await dialog.getByRole("button", { name: "Create", exact: true }).click();
    const secret = (await page.getByText(/^sk-\w{43}$/).textContent()) ?? "";
    await page.getByRole("button", { name: "Copy the secret" }).click();
    await page.getByRole("button", { name: "Copied" }).waitFor();
    expect(await page.evaluate<string>("navigator.clipboard.readText()")).toBe(secret);
    const line = page.getByText("--secret - claude");
    expect(await line.textContent()).toEndWith(`run --url ${gateway.url} --secret - claude`);
    expect(await page.getByText(gateway.url, { exact: true }).count()).toBe(1);
    await page.getByRole("button", { name: "Done" }).click();
    await rowOfKey(page, "from-page").getByText("of $5.00").waitFor();
    expect(await page.content()).not.toContain(secret);

    await openView(page, "Requests");
    const answer = await ask(secret);
    expect(answer.status).toBe(200);
    const row = page.getByRole("row").filter({ hasText: "from-page" }).filter({ hasText: "200" });
    await row.getByText("claude-haiku-4-5").waitFor();
    await row.getByRole("link").first().click();
    const id = answer.field("x-request-id") ?? "";
    expect(page.url()).toStartWith(`${gateway.url}/console/requests/${id}`);
    const drawer = page.getByRole("dialog");
    await drawer.getByText("Proof").click();
    const shown = (await drawer.textContent()) ?? "";
    const command = Bun.spawn([...PROGRAM, "ledger", "show", id, "--json", "--config", gateway.configPath], {
      stdout: "pipe",
    });
    const { sha256, line: own, passes } = documentSchema.parse(await command.stdout.json());
    expect(passes[0]?.amounts.length).toBeGreaterThan(1);
    for (const { price, usd } of passes.flatMap(({ amounts }) => amounts))
      for (const text of [price, usd]) expect(shown).toContain(`$${text}`);
    for (const text of [sha256, own.prev, `$${own.charge_usd}`, id]) expect(shown).toContain(text);
    await page.reload();
    await drawer.getByText("Proof").waitFor();
    expect(problems).toEqual([]);
  },
);

onPage(
  "a session says that its limit is spent, and the page lists the refused request, which has no ledger line",
  async ({ page, problems }) => {
    const session = "0f0e0d0c-bbbb-4bbb-8ccc-121212121212";
    const metadata = { user_id: JSON.stringify({ device_id: "d", account_uuid: "", session_id: session }) };
    const fields = { "x-api-key": SHORT_KEY.secret, "user-agent": "claude-cli/2.0.14 (external, cli)" };
    const body = { model: "claude-haiku-4-5", ...QUESTION, metadata };
    const send = () => rawRequest(gateway.port, { target: "/v1/messages", fields, body });
    expect([(await send()).status, (await send()).status]).toEqual([200, 429]);
    await page.goto(`${gateway.url}/console/sessions/${session}`);
    const panel = page.getByRole("dialog");
    await panel.getByText("Nothing is left").waitFor();
    await panel.getByText("of <$0.0001").waitFor();
    await page.goto(`${gateway.url}/console/requests?key=short`);
    const lost = page.getByRole("region", { name: "Requests without a line" });
    const refused = lost.getByRole("row").filter({ hasText: "429" });
    await refused.getByText(/has spent/).waitFor();
    expect(problems).toEqual([]);
  },
);

onPage("a session shows the tree of its agents, and what the cache missed", async ({ page, problems }) => {
  await openView(page, "Sessions");
  await page.getByRole("row").filter({ hasText: "orchard" }).getByRole("link").first().click();
  const tree = page.getByRole("region", { name: "Agents" });
  await tree.getByRole("rowheader").first().waitFor();
  const names = await tree.getByRole("rowheader").allTextContents();
  expect(names).toEqual(["main agent", "search", "fetch, level 2", "All together"]);
  const misses = page.getByRole("region", { name: "Cache misses" });
  expect(await misses.getByText("tools changed").count()).toBe(3);
  await misses.getByText("$0.41").first().waitFor();
  expect(await listViolations(page)).toEqual([]);
  expect(problems).toEqual([]);
});

onPage("P121: the page shows a limit that is spent, and the refused request", async ({ page }) => {
  await page.goto(`${gateway.url}/console/keys/relay/limits`);
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("USD per day").fill("0.00001");
  await dialog.getByRole("button", { name: "Save" }).click();
  const card = rowOfKey(page, "relay");
  await card.getByText("per day").waitFor();
  const target = "/relay/v1/messages";
  const fields = { "x-api-key": keyOf("relay") };
  const send = () =>
    rawRequest(gateway.port, { target, fields, body: { model: "claude-haiku-4-5", ...QUESTION } });
  while ((await send()).status !== 429) await Bun.sleep(50);
  await openView(page, "Requests");
  const lost = page.getByRole("region", { name: "Requests without a line" });
  const refused = lost.getByRole("row").filter({ hasText: "relay" }).filter({ hasText: "429" });
  await refused.filter({ hasText: "claude-haiku-4-5" }).first().getByRole("link").first().click();
  await page.getByText(/limit/).first().waitFor();
  await page.getByRole("button", { name: "Close" }).click();
  await openView(page, "Overview");
  await page.getByText("Nothing is left: requests are refused").waitFor();
  const status = page.getByRole("region", { name: "Status" });
  await status.getByText(/is spent: requests are refused/).waitFor();
  expect(await status.getByText(/requests refused/).count()).toBe(0);
  const lines = gateway.ledger().filter(({ key }) => key === "relay");
  const spent = lines.reduce((sum, line) => sum + Number(line["charge_usd"]), 0);
  const words = ["relay", `usd_per_day=${(spent / 0.895).toFixed(12)}`, "--config", gateway.configPath];
  Bun.spawnSync([...PROGRAM, "keys", "limit", ...words]);
  await status.getByText(", 89 % spent").waitFor();
  await status.getByRole("link", { name: "relay", exact: true }).click();
  await page.waitForURL(/keys\?key=relay$/);
  await card.waitFor();
  expect(await page.getByRole("region", { name: "Keys" }).getByRole("rowheader").count()).toBe(1);
  await page.getByRole("button", { name: "Remove the filter key" }).click();
  await rowOfKey(page, "messages").waitFor();
});

onPage(
  "P185: the page disables, moves and removes a key, and gives it a new secret, as the commands do",
  async ({ page }) => {
    await openView(page, "Keys");
    const card = rowOfKey(page, "content");
    const menu = card.getByLabel("Change content");
    await menu.click();
    await card.getByRole("button", { name: "Disable" }).click();
    await card.getByText("disabled", { exact: true }).waitFor();
    expect(readFileSync(gateway.configPath, "utf8")).toMatch(/"sk-test-content",\s*"?disabled"?: true/);
    // The change applies at once, before the gateway notices that the file has changed.
    const fields = { authorization: `Bearer ${keyOf("content")}` };
    const ask = (target: string, more: object = {}) => rawRequest(gateway.port, { target, fields, ...more });
    expect((await ask("/v1beta/models")).status).toBe(401);
    await menu.click();
    await card.getByRole("button", { name: "Enable" }).click();
    await card.getByText("active", { exact: true }).waitFor();
    await menu.click();
    await card.getByRole("link", { name: "Move to a group" }).click();
    await page.getByRole("dialog").getByLabel("Group").selectOption("responses");
    await page.getByRole("dialog").getByRole("button", { name: "Move" }).click();
    await card.getByText("responses ×1").waitFor();
    await page.goto(`${gateway.url}/console/keys/content/limits`);
    await page.getByRole("dialog").getByLabel("Models without a price").selectOption("allow");
    await page.getByRole("dialog").getByLabel("USD per day").fill("0");
    await page.getByRole("dialog").getByRole("button", { name: "Save" }).click();
    await card.getByText("models without a price are allowed").waitFor();
    expect((await ask("/v1/responses", { body: { model: "gpt-5", input: "Hello" } })).status).toBe(429);
    await menu.click();
    await card.getByRole("link", { name: "New secret" }).click();
    await page.getByRole("button", { name: "Make a new secret" }).click();
    await page.getByText(/^sk-\w{43}$/).waitFor();
    expect((await ask("/v1/models")).status).toBe(401);
    expect(readFileSync(gateway.configPath, "utf8")).not.toContain(keyOf("content"));
    await page.getByRole("button", { name: "Done" }).click();
    await page.getByRole("link", { name: "Create a key" }).click();
    await page.getByLabel("Name").fill("messages");
    await page.getByRole("button", { name: "Create", exact: true }).click();
    await page.getByText('There is already a key "messages".').waitFor();
    await page.getByRole("dialog").getByRole("button", { name: "Cancel" }).click();
    expect(readFileSync(gateway.configPath, "utf8")).toMatch(NAMED);
    await menu.click();
    await card.getByRole("link", { name: "Remove" }).click();
    await page.getByRole("button", { name: "Remove the key" }).click();
    await card.waitFor({ state: "detached" });
    expect(readFileSync(gateway.configPath, "utf8")).not.toMatch(NAMED);
    await rowOfKey(page, "messages").waitFor();
  },
);

onPage(
  "a script in a name or an error is only text, and a character that reverses text is shown as its escape",
  async ({ page }) => {
    const evil = `<img src=x onerror="document.title='owned'"><script>document.title='owned'</script>`;
    for (const model of [evil, "sonnet\u202egnp\nTotal"]) await ask(keyOf("messages"), model);
    for (const view of ["?period=today&by=model", "/requests"]) {
      await page.goto(`${gateway.url}/console${view}`);
      for (const text of ["<img src=x", "sonnet\\u202egnp"]) await page.getByText(text).first().waitFor();
      expect(await page.getByText("\u202e").count()).toBe(0);
    }
    const row = page.getByRole("row", { name: /sonnet.*gnp/ });
    await row.getByRole("link").first().click();
    await page.getByRole("dialog").getByText("sonnet\\u202egnp\\u000aTotal").waitFor();
    await page.goto(`${gateway.url}/console/keys/${encodeURIComponent(evil)}/rotate`);
    await page.goto(`${gateway.url}/console/${encodeURIComponent(evil)}`);
    await page.getByText("There is no such view").waitFor();
    expect(await page.title()).not.toBe("owned");
    expect(await page.locator("img, main script").count()).toBe(0);
    // Even if a text became a script, the page's content security policy would stop the script.
    const attempt = `const each = document.createElement("script");
      each.textContent = "document.title = 1"; document.body.append(each)`;
    await page.evaluate(attempt).catch(() => {});
    expect(await page.title()).not.toBe("1");
  },
);

test.skipIf(!hasBrowser)(
  "a page stays signed in when the gateway restarts, unless the gateway's file of sign-ins is gone",
  async () => {
    const own = makeTempFolder();
    const first = await startGateway({ config: writeConfig(), folder: own });
    const { page, context } = await signIn({}, first);
    await page.getByText("live", { exact: true }).waitFor();
    await first.stop();
    await page.getByText("This page connects again by itself").waitFor();
    const second = await startGateway({ config: writeConfig(first.port), folder: own });
    await page.getByText("live", { exact: true }).waitFor();
    await second.stop();
    unlinkSync(own.join("ledger.jsonl.sign-ins.json"));
    const third = await startGateway({ config: writeConfig(first.port), folder: own });
    await page.getByText("You are not signed in").waitFor();
    await page.goto(await makeLink(third));
    await page.getByRole("navigation").waitFor();
    await context.close();
    await third.stop();
    own.remove();
  },
);

onPage("the open filter menu is inside the window", async ({ page }) => {
  for (const width of [390, 1280])
    for (const view of ["?period=7d", "/requests?period=7d"]) {
      await page.setViewportSize({ width, height: 860 });
      await page.goto(`${gateway.url}/console${view}`);
      await page.getByText("Filter", { exact: true }).click();
      await page.locator(".menu select").first().waitFor();
      const box = (await page.locator(".menu:popover-open").boundingBox()) ?? expect.unreachable();
      expect([view, box.x >= 0, box.x + box.width <= width]).toEqual([view, true, true]);
    }
});

test.skipIf(!hasBrowser)("the month's cost is projected, and choosing a day shows its costs", async () => {
  const own = makeTempFolder();
  const days = [
    { ago: 9, model: "claude-opus-4-5", charge_usd: "40" },
    { ago: 1, model: "claude-sonnet-4-5", charge_usd: "3" },
    { ago: 1, model: "claude-opus-4-5", charge_usd: "1" },
    { ago: 0, model: "claude-opus-4-5", charge_usd: "4" },
  ];
  let prev = GENESIS;
  const lines = days
    .toSorted((a, b) => b.ago - a.ago)
    .map(({ ago, ...more }, index) => {
      const time = new Date(Date.now() - ago * 86_400_000 - 1000).toISOString();
      const line = encodeLine(draftOf(`req_day_${index}`, { time, ...more }), prev);
      prev = hashLine(line);
      return `${line}\n`;
    });
  writeFileSync(own.join("ledger.jsonl"), lines.join(""), { mode: 0o600 });
  const other = await startGateway({ config: writeConfig(), folder: own });
  const { page, context } = await signIn({}, other);
  await page.goto(`${other.url}/console?period=7d&by=model`);
  const legend = page.getByRole("table", { name: "Names", exact: true }).first();
  const read = () => legend.getByRole("row").allInnerTexts();
  const readCells = async () => (await read()).map((row) => row.split("\t").map((cell) => cell.trim()));
  await legend.getByText("Whole period").waitFor();
  await page.getByText(/^≈ \$\d+ by \w+ \d+ \(\$\d+–\d+\)$/).waitFor();
  expect((await readCells()).slice(1)).toEqual([
    ["claude-opus-4-5", "$5.00", "63 %"],
    ["claude-sonnet-4-5", "$3.00", "37 %"],
    ["All together", "$8.00", "100 %"],
  ]);
  // The pointer is on yesterday's bar, the last but one of seven. The plot begins 0.6 bars before the first
  // one, and ends 0.6 bars after the last.
  const { x, y, width, height } = (await page.locator(".u-over").boundingBox()) ?? expect.unreachable();
  await page.mouse.move(x + (width * (5 + 0.6)) / (6 + 2 * 0.6), y + height / 2);
  await legend.getByText("25 %").waitFor();
  expect((await readCells()).slice(1)).toEqual([
    ["claude-opus-4-5", "$1.00", "25 %"],
    ["claude-sonnet-4-5", "$3.00", "75 %"],
    ["All together", "$4.00", "100 %"],
  ]);
  await page.mouse.move(x, y - 100);
  await legend.getByText("Whole period").waitFor();
  await page.getByRole("img", { name: /arrow keys/ }).focus();
  await page.keyboard.press("ArrowLeft");
  await legend.getByText("$0").first().waitFor();
  expect((await readCells())[1]).toEqual(["claude-opus-4-5", "$4.00", "100 %"]);
  // Both bounds are $13 when they are rounded, so the page shows no range.
  await page.route(/reports\/overview/, async (route) => {
    const projection = { usd: "13.1", low_usd: "12.9", high_usd: "13.4" };
    await route.fulfill({ json: { ...(await (await route.fetch()).json()), projection } });
  });
  await page.reload();
  await page.getByText(/^≈ \$13 by \w+ \d+\s*$/).waitFor();
  await page.unrouteAll({ behavior: "wait" });
  await context.close();
  await other.stop();
  own.remove();
});

/** Elements with an animation or a transition. */
const MOVING = `[...document.querySelectorAll("*")].filter((each) => {
  const { animationName, transitionDuration } = getComputedStyle(each);
  return animationName !== "none" || parseFloat(transitionDuration) > 0.001;
}).map(({ tagName, className }) => tagName + " " + className)`;

/** Elements outside of the window, or cut so that they cannot be read. A long name may be cut if
 *  its beginning has room. */
const LIST_CUT = `[...document.querySelectorAll("body, body *")].filter((each) => {
  if (each.closest(".hidden, .skip, .u-wrap, .snippet code, details, .name[title] > *")) return false;
  const { left, right, width } = each.getBoundingClientRect();
  if (width === 0) return false;
  if (left < -0.5 || right > innerWidth + 0.5) return true;
  const isCut = each.scrollWidth > each.clientWidth && getComputedStyle(each).overflowX !== "visible";
  return isCut && !(each.matches(".name[title]") && each.clientWidth > 60);
}).map(({ tagName, className, textContent, scrollWidth, clientWidth }) =>
  [tagName, className, textContent.slice(0, 40), scrollWidth, clientWidth].join(" "))`;

/** Whether each plot fits its place. A plot follows the size of its place a moment later. */
const PLOT_FITS = `[...document.querySelectorAll(".canvas")].every((each) => each.scrollWidth <= each.clientWidth)`;

/** Makes texts as wide as in DejaVu Sans or Verdana, the widest fonts that systems use for their own texts. */
const WIDEN = `(() => {
  const [sample, wide] = ["Nov 20, 14:05 $0.1234 claude-sonnet-4-5", 20.917];
  const canvas = document.createElement("canvas").getContext("2d");
  canvas.font = "100px " + getComputedStyle(document.body).fontFamily;
  const missing = Math.max(0, wide - canvas.measureText(sample).width / 100) / sample.length;
  const style = new CSSStyleSheet();
  style.replaceSync("* { letter-spacing: " + missing + "em }");
  document.adoptedStyleSheets = [style];
})()`;

/** Amounts without a title. Drawers and messages of the gateway have exact amounts, and are left out. */
const UNTITLED = `[...document.querySelectorAll("main *")].filter((each) =>
  /\\$\\d/.test([...each.childNodes].map((node) => node.nodeType === 3 ? node.data : "").join("").split("The last one:")[0]) &&
  !each.closest("[title*='$'], .side, .notices, .text, svg")).map(({ outerHTML }) => outerHTML)`;

describe("everybody can use the console's page", () => {
  const VIEWS = [
    ["", "Overview"],
    ["/sessions", "Sessions"],
    ["/requests", "Requests"],
    ["/keys", "Keys"],
    ["/channels", "Channels"],
    ["/keys/new", "Keys"],
    ["/nowhere", "Gateway"],
  ] as const;

  /** Shows a view as a link of the page does: loading the page costs six times as much. */
  const show = async (page: Page, view: string, title: string): Promise<void> => {
    await page.evaluate(`history.pushState(null, "", ${JSON.stringify(`/console${view}`)});
      dispatchEvent(new PopStateEvent("popstate"));`);
    await page.locator("h1", { hasText: title }).waitFor({ state: "attached" });
    await page.getByText("Reading the ledger").waitFor({ state: "detached" });
  };

  test.skipIf(!hasBrowser)(
    "axe finds no fault in light and dark, each amount has its exact value as a tooltip, and reduced motion stops all motion",
    async () => {
      const { page, context } = await signIn({ reducedMotion: "reduce" });
      for (const [view, title] of VIEWS) {
        await show(page, view, title);
        for (const colorScheme of ["light", "dark"] as const) {
          await page.emulateMedia({ colorScheme });
          const seen = [await listViolations(page)];
          for (const list of [MOVING, UNTITLED]) seen.push(await page.evaluate<string[]>(list));
          expect([view, colorScheme, ...seen]).toEqual([view, colorScheme, [], [], []]);
        }
      }
      await context.close();
    },
  );

  test.skipIf(!hasBrowser).each(["en-US", "de-DE", "hi-IN"])(
    "nothing is cut or scrolls sideways in windows from 360 pixels on, with a wide font and the formats of %s",
    async (locale) => {
      await ask(keyOf("messages"));
      await ask("sk-wrong");
      const { page, context } = await signIn({ locale, bypassCSP: true });
      await page.evaluate(WIDEN);
      await page.getByText("live", { exact: true }).waitFor();
      await page.evaluate("document.querySelector('.connection').append(': 12 open streams')");
      await page.waitForFunction(String.raw`/^\$\d+\.\d+ · Overview · Gateway$/.test(document.title)`);
      const panels = [
        [`/sessions/${TREE}`, "Sessions"],
        ["/keys/content/limits", "Keys"],
        ["/requests/req_tree_0?model=x", "Requests"],
      ] as const;
      for (const [view, title] of [...VIEWS, ...panels]) {
        await show(page, view, title);
        // Other locales change only how times are written, so two widths are enough for them.
        for (const width of locale === "en-US" ? [360, 480, 600, 900, 1024, 1280, 2560] : [360, 900]) {
          await page.setViewportSize({ width, height: 800 });
          await page.waitForFunction(PLOT_FITS);
          expect([view, width, await page.evaluate<string[]>(LIST_CUT)]).toEqual([view, width, []]);
          if (width !== 360) continue;
          if (view !== "/requests") continue;
          const titles = page
            .getByRole("region", { name: "Requests", exact: true })
            .getByRole("columnheader");
          await titles.first().waitFor();
          expect(await titles.allTextContents()).toEqual(["Time", "Model", "Status", "Charge"]);
        }
      }
      await context.close();
    },
  );

  onPage("the keyboard alone is enough to use the page", async ({ page }) => {
    await page.getByText("live", { exact: true }).waitFor();
    const press = async (key: string, until: string): Promise<void> => {
      for (let count = 0; count < 40; count += 1) {
        await page.keyboard.press(key);
        const focused = await page.evaluate<string>("document.activeElement?.textContent ?? ''");
        if (focused.includes(until)) return;
      }
      throw new Error(`${key} never reached ${until}`);
    };
    await press("Tab", "Skip to the content");
    await page.keyboard.press("Enter");
    expect(await page.evaluate<string>("document.activeElement?.id ?? ''")).toBe("main");
    await page.goto(`${gateway.url}/console`);
    await page.getByText("live", { exact: true }).waitFor();
    await press("Tab", "Keys");
    await page.keyboard.press("Enter");
    await rowOfKey(page, "messages").waitFor();
    await press("Tab", "Create a key");
    await page.keyboard.press("Enter");
    await page.getByRole("dialog").waitFor();
    await page.keyboard.type("typed");
    expect(await page.getByLabel("Name").inputValue()).toBe("typed");
    await page.keyboard.press("Escape");
    await page.getByRole("dialog").waitFor({ state: "detached" });
    const menu = page.getByLabel("Change messages");
    await menu.press("Enter");
    await page.locator(".menu :focus", { hasText: "Disable" }).press("ArrowDown");
    await page.locator(".menu :focus", { hasText: "Limits" }).press("Escape");
    await page.getByRole("link", { name: "Limits" }).waitFor({ state: "detached" });
    expect(await page.locator(":focus").getAttribute("aria-label")).toBe("Change messages");
    await menu.click();
    await page.mouse.click(2, 500);
    await page.getByRole("link", { name: "Limits" }).waitFor({ state: "detached" });
    await page.goto(`${gateway.url}/console`);
    const plot = page.getByRole("img", { name: /Cost by model/ });
    await plot.focus();
    await page.getByText("Whole period").first().waitFor();
    await page.keyboard.press("ArrowLeft");
    await page.getByRole("columnheader", { name: "Whole period" }).waitFor({ state: "detached" });
    await page.getByText("As a table").focus();
    await page.keyboard.press("Enter");
    const table = page.getByRole("region", { name: /as a table/ });
    await table.getByRole("row").first().waitFor();
  });
});

onPage(
  "links lead from a label to its requests, and from a session to its requests; filters stay set",
  async ({ page, problems }) => {
    await page.goto(`${gateway.url}/console?period=7d&by=label`);
    await page.getByRole("rowheader", { name: "orchard" }).first().getByRole("link").click();
    await page.waitForURL(/requests\?period=7d&label=orchard/);
    await openView(page, "Sessions");
    await page.getByLabel("Order").selectOption("charge");
    await page.waitForURL(/sessions\?period=7d&label=orchard&order=charge$/);
    const sessions = page.getByRole("region", { name: "Sessions" });
    await sessions.getByRole("link", { name: "All together" }).waitFor();
    expect(await sessions.getByRole("row").count()).toBe(3);
    await sessions.getByRole("link").first().click();
    await page.getByRole("region", { name: "Timeline" }).waitFor();
    await page.getByRole("link", { name: "Its 3 requests" }).click();
    await page.waitForURL(new RegExp(`requests\\?period=all&session=${TREE}`));
    const requests = page.getByRole("region", { name: "Requests", exact: true });
    await requests.getByRole("row").nth(3).waitFor();
    expect(await requests.getByRole("row").count()).toBe(4);
    await requests.getByRole("link").first().click();
    await page.getByRole("dialog").getByText("req_tree_2").waitFor();
    await page.getByRole("button", { name: "Close" }).click();
    await page.getByRole("button", { name: "Remove the filter session" }).click();
    await page.waitForURL(/requests\?period=all$/);
    await page.getByRole("navigation").getByRole("link", { name: "Overview" }).click();
    await page.waitForURL(/console\?period=all$/);
    expect(problems).toEqual([]);
  },
);

test.skipIf(!hasBrowser)("times are those of the config's time zone, whatever the browser's is", async () => {
  const zoned = await startGateway({ config: { ...makeConfig(upstream), timezone: "Asia/Kathmandu" } });
  await ask(keyOf("messages"), "claude-haiku-4-5", zoned);
  const { page, context } = await signIn({ timezoneId: "America/Los_Angeles", locale: "en-US" }, zoned);
  await openView(page, "Requests");
  const shown = await page.locator("tbody time").first().textContent();
  const [line] = zoned.ledger();
  const time = new Date(String(line?.["time"])).toLocaleTimeString("en-GB", { timeZone: "Asia/Kathmandu" });
  expect(shown).toEndWith(time);
  await context.close();
  await zoned.stop();
});
