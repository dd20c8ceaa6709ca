// Whether something blocks the event loop. Runs what is large, one thing after the other, in a gateway with a watchdog, and
// reports the longest turn of the loop with the functions that ran in it.

import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { makeLedger } from "../../billing/ledger/ledger-make.ts";
import { type Child, type Cores, type Folder, makeFolder, start } from "../machine.ts";
import { followFeed, OVERVIEW, readAll, REPORT, signIn } from "../parts/page.ts";
import type { Results } from "../results/measures.ts";
import { readStalls } from "./noted-stalls.ts";
import { MAIN, readReadyPort, SECRET } from "../targets/targets.ts";

const MIB = 1 << 20;
const WATCHDOG = join(import.meta.dir, "watchdog.ts");
const SETTLE_MS = 1500;
const DAYS_MS = 28 * 86_400_000;
/** How often an open page loads its reports, each time after a request. */
const REFRESHES = 5;

interface Watched {
  readonly child: Child;
  readonly folder: Folder;
  readonly config: string;
  readonly port: number;
  readonly upstreamUrl: string;
  readonly stalls: string;
}

type Work = (watched: Watched) => Promise<void>;

const WORKS: Readonly<Record<string, Work>> = {
  nothing: async () => {},
  "a request body of 60 MiB": (watched) => send(watched, 60 * MIB, "small"),
  "a request body of 60 MiB in many texts": (watched) => sendTexts(watched, 60 * MIB),
  "a response of 4 MiB": (watched) => send(watched, 1000, "large"),
  "a chat response of 4 MiB": (watched) => sendChat(watched),
  "a list of 5,000 models": (watched) => call(watched, "GET", "/v1/models", null),
  "a report through the control socket": async ({ config }) => {
    await Bun.spawn([process.execPath, MAIN, "channels", "--json", "--config", config], { stdout: "ignore" })
      .exited;
  },
  metrics: (watched) => call(watched, "GET", "/metrics", null),
  "a rotated ledger": async (watched) => {
    for (let count = 0; count < 40; count += 1) await send(watched, 1000, "small");
  },
  "an open page": (watched) => showPage(watched),
  "a reload of 10,000 keys": async ({ child, config, upstreamUrl }) => {
    writeFileSync(config, writeConfig(upstreamUrl, 10_000), { mode: 0o600 });
    while (!child.complaints().includes("changes are applied")) await Bun.sleep(50);
  },
  "a request with 10,000 keys": (watched) => send(watched, 1000, "small"),
  "an open page with 10,000 keys": (watched) => showPage(watched),
};

interface Surroundings {
  readonly cores: Cores | null;
  /** In the ledger before the start. */
  readonly lines: number;
  readonly note: (text: string) => void;
}

export async function measureStalls(results: Results, { cores, lines, note }: Surroundings): Promise<void> {
  const server = startLargeUpstream();
  note("stalls: a ledger");
  const watched = await startWatched(server.url.origin, cores, lines);
  try {
    await send(watched, 1000, "small");
    await sendChat(watched);
    for (const [name, work] of Object.entries(WORKS)) {
      note(`stalls: ${name}`);
      rmSync(watched.stalls, { force: true });
      await work(watched);
      await Bun.sleep(SETTLE_MS);
      const longest = readStalls(watched.stalls)[0];
      results.add("gateway", { [`stall ms, ${name}`]: longest?.ms ?? 0 });
      if (longest !== undefined)
        results.notes.push(`Blocked for ${longest.ms.toFixed(0)} ms by ${name}: ${longest.names}`);
    }
  } finally {
    await watched.child.stop();
    watched.folder.remove();
    await server.stop(true);
  }
}

async function startWatched(upstreamUrl: string, cores: Cores | null, lines: number): Promise<Watched> {
  const folder = makeFolder();
  const ledger = join(folder.path, "ledger.jsonl");
  makeLedger(ledger, lines, { start: Date.now() - DAYS_MS, stepMs: DAYS_MS / lines });
  const config = join(folder.path, "gateway.yaml");
  const stalls = join(folder.path, "stalls");
  writeFileSync(config, writeConfig(upstreamUrl, 0), { mode: 0o600 });
  const command = [
    process.execPath,
    "--preload",
    WATCHDOG,
    MAIN,
    "serve",
    "--config",
    config,
    "--log",
    "off",
  ];
  const child = start(command, { core: cores?.proxy ?? null, env: { STALLS: stalls } });
  return { child, folder, config, stalls, upstreamUrl, port: await readReadyPort(child) };
}

function writeConfig(upstreamUrl: string, keys: number): string {
  const base = { base_url: upstreamUrl, credential: "sk-ant-credential-of-the-benchmark" };
  return JSON.stringify({
    listen: { port: 0 },
    ledger: { path: "ledger.jsonl", rotate: { size: "4KiB" } },
    // Of two equal channels, the conversation decides, which is looked for in the body.
    channels: {
      first: { platform: "messages", ...base },
      second: { platform: "messages", ...base },
      chat: { platform: "responses", ...base },
    },
    groups: {
      first: { platform: "messages", channels: ["first", "second"] },
      chat: { platform: "responses", channels: ["chat"] },
    },
    keys: [
      { name: "bench", group: "first", secret: SECRET },
      { name: "chat", group: "chat", secret: `${SECRET}-chat` },
      ...Array.from({ length: keys }, (_, index) => ({
        name: `key-${index}`,
        group: "first",
        secret_sha256: index.toString(16).padStart(64, "0"),
      })),
    ],
  });
}

/** Its responses are as large as the request's `x-size` says. */
function startLargeUpstream(): Bun.Server<undefined> {
  const small = writeMessage(100);
  // The longest that is read whole.
  const large = writeMessage(4 * MIB - 1000);
  const chat = writeResponses(4 * MIB);
  const models = JSON.stringify({
    data: Array.from({ length: 5000 }, (_, index) => ({
      type: "model",
      id: `model-${index}`,
      display_name: `Model ${index}`,
      created_at: "2026-01-01T00:00:00Z",
    })),
    has_more: false,
  });
  return Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    maxRequestBodySize: 128 * MIB,
    fetch: async (request) => {
      await request.arrayBuffer();
      const { pathname } = new URL(request.url);
      const isLarge = request.headers.get("x-size") === "large";
      const body = pathname.endsWith("/models")
        ? models
        : pathname.endsWith("/responses")
          ? chat
          : isLarge
            ? large
            : small;
      return new Response(body, { headers: { "content-type": "application/json" } });
    },
  });
}

const WORDS = "all work and no play makes jack a dull boy ";

function writeMessage(bytes: number): string {
  return JSON.stringify({
    id: "msg_1",
    type: "message",
    role: "assistant",
    model: "claude-haiku-4-5",
    content: [{ type: "text", text: WORDS.repeat(bytes / WORDS.length + 1) }],
    stop_reason: "end_turn",
    usage: { input_tokens: 10, output_tokens: 5 },
  });
}

function writeResponses(bytes: number): string {
  const text = WORDS.repeat(bytes / WORDS.length + 1);
  return JSON.stringify({
    id: "resp_1",
    object: "response",
    created_at: 1,
    status: "completed",
    model: "gpt-5-mini",
    output: [
      {
        id: "msg_1",
        type: "message",
        status: "completed",
        role: "assistant",
        content: [{ type: "output_text", text, annotations: [] }],
      },
    ],
    usage: { input_tokens: 10, output_tokens: 5, total_tokens: 15 },
  });
}

async function send(watched: Watched, bytes: number, size: string): Promise<void> {
  const content = WORDS.repeat(bytes / WORDS.length + 1);
  const body = { model: "claude-haiku-4-5", max_tokens: 9, messages: [{ role: "user", content }] };
  await call(watched, "POST", "/v1/messages", JSON.stringify(body), { "x-api-key": SECRET, "x-size": size });
}

/** As an agent's conversation: texts of a kilobyte, full of escapes. */
async function sendTexts(watched: Watched, bytes: number): Promise<void> {
  const line = 'if (a === "b") {\n\treturn "c\\d";\n}\n';
  const text = line.repeat(1000 / line.length);
  const messages = Array.from({ length: bytes / (2 * text.length) }, (_, index) => ({
    role: index % 2 === 0 ? "user" : "assistant",
    content: [{ type: "text", text }],
  }));
  const body = { model: "claude-haiku-4-5", max_tokens: 9, messages };
  // This tool may name its session in the body.
  const fields = { "x-api-key": SECRET, "x-size": "small", "user-agent": "claude-cli/2.0.0" };
  await call(watched, "POST", "/v1/messages", JSON.stringify(body), fields);
}

async function sendChat(watched: Watched): Promise<void> {
  const body = { model: "gpt-5-mini", messages: [{ role: "user", content: "x" }] };
  const fields = { authorization: `Bearer ${SECRET}-chat` };
  await call(watched, "POST", "/v1/chat/completions", JSON.stringify(body), fields);
}

/** Signed in, with the live feed, while requests come. */
async function showPage(watched: Watched): Promise<void> {
  const page = await signIn([process.execPath, MAIN], watched.config);
  const closed = new AbortController();
  const feed = followFeed(page, closed.signal);
  await readAll(page);
  for (let count = 0; count < REFRESHES; count += 1) {
    await send(watched, 1000, "small");
    for (const name of [OVERVIEW, REPORT]) await (await page.load(name)).text();
  }
  closed.abort();
  await feed;
}

async function call(
  { port }: Watched,
  method: string,
  path: string,
  body: string | null,
  headers: Record<string, string> = { "x-api-key": SECRET },
): Promise<void> {
  const response = await fetch(`http://127.0.0.1:${port}${path}`, { method, body, headers });
  await response.arrayBuffer();
  if (response.status !== 200) throw new Error(`${path} has the status ${response.status}`);
}
