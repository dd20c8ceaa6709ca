// A gateway with a month of requests, limits and some traffic, to look at its page by hand and for the pictures in docs/images:
//   bun test/web/showcase.ts           serves until Ctrl-C and prints a sign-in link
//   bun test/web/showcase.ts FOLDER    writes the pictures of the page into the folder

import { join } from "node:path";
import { startDemoUpstream } from "../harness/upstreams/demo-upstream.ts";
import { CREDENTIAL, startGatewayHere } from "../harness/gateway.ts";
import { makeTempFolder } from "../harness/temp.ts";
import { openBrowser } from "./browser.ts";
import { makeMonth } from "./showcase-ledger.ts";

const upstream = startDemoUpstream({ credential: CREDENTIAL, paceMs: 60 });
const folder = makeTempFolder();
makeMonth(folder.join("ledger.jsonl"), Date.now());

const channel = (platform: string, more: object = {}) => ({
  platform,
  base_url: upstream.url,
  credential: CREDENTIAL,
  ...more,
});
const group = (platform: string, multiplier: string, channels: string[], description: string) => ({
  platform,
  multiplier,
  channels,
  description,
});
const key = (name: string, of: string, created: string, limits: object = {}) => ({
  name,
  group: of,
  secret: `sk-showcase-${name}`,
  created,
  limits,
});
export const gateway = startGatewayHere({
  console: true,
  folder,
  config: {
    channels: {
      "anthropic-main": channel("messages"),
      "anthropic-spare": channel("messages", { priority: 2 }),
      "openai-main": channel("responses"),
      "google-main": channel("content", { base_url: "http://127.0.0.1:9", timeouts: { connect: "1s" } }),
    },
    groups: {
      claude: group("messages", "1", ["anthropic-main", "anthropic-spare"], "Anthropic at cost"),
      codex: group("responses", "0.8", ["openai-main"], "OpenAI, the team's contract"),
      gemini: group("content", "1.25", ["google-main"], "Google"),
    },
    keys: [
      key("laptop", "claude", "2026-10-02", { usd_per_day: "60", usd_per_month: "900" }),
      key("workstation", "claude", "2026-10-02", { usd_per_month: "42" }),
      key("ci", "codex", "2026-11-01", { usd_per_month: "150", requests_per_minute: "60" }),
      key("scripts", "codex", "2026-11-01"),
      key("guest", "gemini", "2026-11-12"),
    ],
  },
});

const REQUESTS = [
  [
    "/v1/messages",
    "sk-showcase-laptop",
    {
      model: "claude-sonnet-4-5",
      max_tokens: 900,
      stream: true,
      messages: [
        { role: "user", content: "Explain the tide in a few sentences, with the moon and the sun, please." },
      ],
    },
  ],
  [
    "/v1/messages",
    "sk-showcase-workstation",
    { model: "claude-haiku-4-5", max_tokens: 300, messages: [{ role: "user", content: "Hello" }] },
  ],
  ["/v1/responses", "sk-showcase-ci", { model: "gpt-5", stream: true, input: "Why does the build fail?" }],
  [
    "/v1beta/models/gemini-2.5-pro:generateContent",
    "sk-showcase-guest",
    { contents: [{ role: "user", parts: [{ text: "Hello" }] }] },
  ],
] as const;

async function send([target, key, body]: (typeof REQUESTS)[number]): Promise<void> {
  const headers = {
    authorization: `Bearer ${key}`,
    "content-type": "application/json",
    "user-agent": "claude-cli/2.0.14 (external, cli)",
  };
  const request = { method: "POST", headers, body: JSON.stringify(body) };
  // At the end, the gateway breaks what is still open.
  await fetch(gateway.url + target, request)
    .then((response) => response.text())
    .catch(() => {});
}

async function takePictures(to: string): Promise<void> {
  const browser = await openBrowser();
  for (const [name, path, scheme] of [
    ["console-overview", "?period=30d&by=model", "light"],
    ["console-session", "/sessions?period=7d&order=charge", "dark"],
  ] as const) {
    const page = await browser.newPage({ colorScheme: scheme, viewport: { width: 1280, height: 900 } });
    await page.goto(gateway.running.console?.createLink() ?? "");
    await page.getByRole("navigation").waitFor();
    await page.goto(`${gateway.url}/console${path}`);
    await page.getByRole("heading", { level: 2 }).first().waitFor();
    if (path.startsWith("/sessions")) await page.locator("tbody a").first().click();
    await page.waitForTimeout(1500);
    await page.screenshot({ path: join(to, `${name}.png`) });
  }
  await browser.close();
}

export function startTraffic(): Timer {
  return setInterval(() => {
    // The first ones come more often than the last, which fails.
    const request = REQUESTS[Math.floor(Math.random() ** 2 * REQUESTS.length)];
    if (request !== undefined) void send(request);
  }, 400);
}

if (import.meta.main) {
  const traffic = startTraffic();
  const [, , to] = process.argv;
  if (to === undefined) {
    console.log(`${gateway.running.console?.createLink()}`);
    process.on("SIGINT", () => process.exit());
  } else {
    await Bun.sleep(6000);
    await takePictures(to);
    clearInterval(traffic);
    await gateway.stop();
    upstream.stop();
    folder.remove();
    process.exit();
  }
}
