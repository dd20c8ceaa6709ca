// The long run: a real gateway with many clients for minutes, while its upstreams
// fail in every way, its clients leave at any time and its config changes. It ends
// with a list of what went wrong. `bun run soak [--seconds N] [--clients N]`

import { PLATFORMS } from "../../src/config/schema.ts";
import { readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import type { FaultName } from "../harness/upstreams/faults.ts";
import {
  type DemoUpstream,
  type ReceivedRequest,
  startDemoUpstream,
} from "../harness/upstreams/demo-upstream.ts";
import { type Client, createClient } from "../../src/lib/http1/client/client.ts";
import type { Field, Origin } from "../../src/lib/http1/types.ts";
import { getField } from "../../src/lib/json/json.ts";
import { followFeed, OVERVIEW, signIn } from "../bench/parts/page.ts";
import { readStalls } from "../bench/stalls/noted-stalls.ts";
import { keyOf, type Platform, startGateway } from "../harness/gateway.ts";
import { makeTempFolder, readLedger } from "../harness/temp.ts";
import { run } from "../cli/driving.ts";
import { readAll } from "../lib/http1/peers.ts";
import { pullFrom } from "../lib/http1/pull.ts";

const { values } = parseArgs({
  options: { seconds: { type: "string", default: "300" }, clients: { type: "string", default: "200" } },
});
const SECONDS = Number(values.seconds);
const CLIENTS = Number(values.clients);

const FAULTS: readonly FaultName[] = [
  ...([401, 402, 403, 408, 429, 500, 502, 503, 504, 529] as const).map(
    (status): FaultName => `status-${status}`,
  ),
  "html",
  "no-usage",
  "gzip",
  "close-delimited",
  "never-answer",
  "reset-before-head",
  "close-before-head",
  "reset-in-head",
  "silent-after-head",
  "reset-after-head",
  "stall",
  "reset-mid-stream",
  "reset-mid-chunk",
  "close-mid-chunk",
  "close-mid-stream",
  "short-length",
  "early-hints",
  "close-after",
  "reset-after",
  "garbage",
  "bad-chunk",
  "bad-length",
];
/** An answer that is whole without a stream's terminal event passes unchanged, and is not judged. */
const STREAM_FAULTS: readonly FaultName[] = ["error-first", "error-event", "truncated", "no-terminal"];

interface Kind {
  readonly platform: Platform;
  readonly target: (stream: boolean) => string;
  readonly body: (word: string, stream: boolean) => object;
  readonly ending: RegExp;
}

const user = (content: string) => [{ role: "user", content }];
const contents = (text: string) => ({ contents: [{ role: "user", parts: [{ text }] }] });
const messages = (platform: Platform, prefix: string): Kind => ({
  platform,
  target: () => `${prefix}/v1/messages`,
  body: (word, stream) => ({ model: "claude-haiku-4-5", max_tokens: 99, stream, messages: user(word) }),
  ending: /"?message_stop"?/,
});
const content = (platform: Platform, prefix: string): Kind => ({
  platform,
  target: (stream) =>
    `${prefix}/v1beta/models/gemini-2.5-pro:${stream ? "streamGenerateContent?alt=sse" : "generateContent"}`,
  body: contents,
  ending: /"finishReason"/,
});
const KINDS: readonly Kind[] = [
  messages("messages", ""),
  messages("relay", "/relay"),
  content("content", ""),
  content("relay", "/relay"),
  {
    platform: "responses",
    target: () => "/v1/responses",
    body: (word, stream) => ({ model: "gpt-5.4", stream, input: word }),
    ending: /response\.completed/,
  },
  {
    platform: "responses",
    target: () => "/v1/chat/completions",
    body: (word, stream) => ({ model: "gpt-5.4", stream, messages: user(word) }),
    ending: /\[DONE\]/,
  },
];

const MAIN = join(import.meta.dir, "../../src/main.ts");
const WATCHDOG = join(import.meta.dir, "../bench/stalls/watchdog.ts");
const STALLS = "stalls";
const SHOWN_STALLS = 10;

/** As often as the page loads it while requests come. */
const REFRESH_MS = 3000;

const chance = (share: number): boolean => Math.random() < share;
const pick = <T>(list: readonly T[]): T => list[Math.floor(Math.random() * list.length)]!;

const counts = new Map<string, number>();
const wrongs: string[] = [];
/** Ids of whole answers: each has its line. */
const complete = new Set<string>();
let serial = 0;

function count(what: string): void {
  counts.set(what, (counts.get(what) ?? 0) + 1);
}

function wrong(what: string): void {
  count("WRONG");
  if (wrongs.length < 20) wrongs.push(what);
}

/** Sends one request and checks its answer. */
async function ask(client: Client, origin: Origin): Promise<void> {
  const kind = pick(KINDS);
  const stream = chance(0.7);
  const word = `zz-${(serial += 1)}-zz`;
  const session: Field[] = chance(0.5) ? [["x-session-id", `s${serial % 500}`]] : [];
  const reported = `${stream ? "stream of " : ""}${kind.target(stream)}`;
  const pulled = pullFrom(client);
  const sending = pulled.send({
    origin,
    method: "POST",
    target: kind.target(stream),
    fields: [["authorization", `Bearer ${keyOf(kind.platform)}`], ...session],
    body: Buffer.from(JSON.stringify(kind.body(word, stream))),
    deadlines: { connectMs: 10_000, firstByteMs: 30_000, idleMs: 30_000 },
  });
  let leave = (): void => sending.cancel();
  let left = false;
  const leaves = (): void => {
    left = true;
    leave();
  };
  const timer = chance(0.1) ? setTimeout(leaves, Math.random() * 60) : undefined;
  let status = 0;
  try {
    const answer = await sending.head;
    leave = () => answer.cancel();
    ({ status } = answer);
    const text = (await readAll(answer)).toString();
    const verdict = judge(kind, { status, text, stream, word });
    if (verdict === "complete") complete.add(answer.field("x-request-id") ?? "");
    if (["complete", "told", "refused"].includes(verdict)) count(verdict);
    else wrong(`${reported}: ${verdict}: ${status} ${text.slice(0, 600)}`);
  } catch (fault) {
    if (left) count("left");
    // A stream that was reset in the middle: every client sees an error.
    else if (status === 200) count("reset");
    else wrong(`${reported}: no answer at all: ${String(fault)}`);
  } finally {
    clearTimeout(timer);
  }
}

interface Answered {
  readonly status: number;
  readonly text: string;
  readonly stream: boolean;
  readonly word: string;
}

/** Upstreams' own errors, and what they become; 400, 401 and 404 would be the gateway's mistakes. 500 is also the bridge's
 *  status for a model that failed. */
const REFUSALS = new Set([402, 403, 408, 429, 500, 502, 503, 504, 529]);
/** The page of the demo's upstream. An error passes unchanged if no other channel is left. */
const PAGE = /^<html>.*502 Bad Gateway/;

function judge(kind: Kind, answered: Answered): string {
  const { status, text, word } = answered;
  const others = (text.match(/zz-\d+-zz/g) ?? []).filter((other) => other !== word);
  if (others.length > 0) return "somebody else's answer";
  if (status === 200) return judgeAnswer(kind, answered);
  return REFUSALS.has(status) && (tellsError(text) || PAGE.test(text)) ? "refused" : "no error in its text";
}

function judgeAnswer(kind: Kind, { text, stream, word }: Answered): string {
  if (!stream) return text.includes(word) ? "complete" : "not the answer";
  if (/"error":\s*\{/.test(text))
    return kind.ending.test(text) && !text.includes("finishReason") ? "both" : "told";
  if (!kind.ending.test(text)) return "a clean end without a terminal event";
  return text.includes(word) ? "complete" : "not the answer";
}

function tellsError(text: string): boolean {
  try {
    return typeof JSON.parse(text).error.message === "string";
  } catch {
    return false;
  }
}

function makeConfig(a: DemoUpstream, b: DemoUpstream, round: number): string {
  const timeouts = { connect: "1s", first_byte: "1s", idle: "1s" };
  const channel = (platform: Platform, url: string, priority: number) => ({
    platform,
    base_url: url,
    credential: "credential-of-the-channel",
    priority,
    timeouts,
  });
  return JSON.stringify({
    listen: { port: 0 },
    channels: Object.fromEntries(
      PLATFORMS.flatMap((platform) => [
        [`${platform}-a`, channel(platform, a.url, 1)],
        [`${platform}-b`, channel(platform, b.url, 1 + (round % 2))],
      ]),
    ),
    groups: Object.fromEntries(
      PLATFORMS.map((platform) => [
        platform,
        { platform, multiplier: round % 3 === 0 ? "1" : "0.8", channels: [`${platform}-a`, `${platform}-b`] },
      ]),
    ),
    keys: PLATFORMS.map((platform) => ({ name: platform, group: platform, secret: keyOf(platform) })),
  });
}

/** Shows the page until it is closed. */
async function showPage(configPath: string, closed: AbortSignal): Promise<void> {
  const page = await signIn([process.execPath, MAIN], configPath);
  const feed = followFeed(page, closed);
  while (!closed.aborted) {
    await (await page.load(OVERVIEW)).text();
    await Bun.sleep(REFRESH_MS);
  }
  await feed;
}

function measureRss(pid: number): number {
  return Number(Bun.spawnSync(["ps", "-o", "rss=", "-p", String(pid)]).stdout.toString()) / 1024;
}

/** Open files, sockets included, where the system reports them. */
function countFiles(pid: number): number {
  return process.platform === "linux" ? readdirSync(`/proc/${pid}/fd`).length : 0;
}

const median = (list: readonly number[]): number => list.toSorted((x, y) => x - y)[list.length >> 1] ?? 0;

function isStream({ json, target }: ReceivedRequest): boolean {
  return getField(json, "stream") === true || target.includes("streamGenerateContent");
}

/** Causes faults, outages and new configs until it is stopped. */
function disturb(upstreams: readonly DemoUpstream[], reload: (round: number) => void): () => void {
  let round = 0;
  let stopped = false;
  const timers = [
    setInterval(() => pick(upstreams).next(pick(FAULTS)), 25),
    setInterval(() => pick(upstreams).next({ fault: pick(STREAM_FAULTS), when: isStream }), 100),
    setInterval(() => reload((round += 1)), 3000),
    setInterval(() => {
      const upstream = pick(upstreams);
      upstream.refuse();
      setTimeout(() => stopped || upstream.accept(), 50 + Math.random() * 1500);
    }, 10_000),
  ];
  return () => {
    stopped = true;
    timers.forEach(clearInterval);
  };
}

async function main(): Promise<void> {
  using folder = makeTempFolder();
  const upstreams = [1, 2].map(() => startDemoUpstream({ records: false, paceMs: 2, firstByteMs: 5 }));
  const [a, b] = [upstreams[0]!, upstreams[1]!];
  const gateway = await startGateway({
    config: makeConfig(a, b, 0),
    folder,
    command: [process.execPath, "--preload", WATCHDOG, MAIN],
    env: { STALLS: folder.join(STALLS) },
  });
  const files = countFiles(gateway.pid);
  const began = performance.now();
  const elapsed = (): number => (performance.now() - began) / 1000;
  const rss: number[] = [];
  const sampling = setInterval(() => rss.push(measureRss(gateway.pid)), 1000);
  const showing = setInterval(() => report(elapsed(), rss.at(-1) ?? 0), 10_000);
  const page = new AbortController();
  const shown = showPage(gateway.configPath, page.signal);
  const stopDisturbing = disturb(upstreams, (round) => {
    const broken = round % 5 === 4;
    writeFileSync(gateway.configPath, broken ? "channels: [" : makeConfig(a, b, round), { mode: 0o600 });
  });
  const client = createClient();
  const origin: Origin = { tls: false, host: "127.0.0.1", port: gateway.port };
  const askOn = async (): Promise<void> => {
    while (elapsed() < SECONDS) await ask(client, origin);
  };
  await Promise.all(Array.from({ length: CLIENTS }, askOn));
  page.abort();
  await shown;
  client.close();
  stopDisturbing();
  clearInterval(showing);
  clearInterval(sampling);
  report(elapsed(), rss.at(-1) ?? 0);
  upstreams.forEach((upstream) => upstream.stop());
  await finish({ gateway, rss, files, folder: folder.path });
}

function report(seconds: number, rss: number): void {
  const reported = [...counts].map(([what, times]) => `${what} ${times}`).join(", ");
  console.log(`${seconds.toFixed(0)} s: ${reported}; ${rss.toFixed(0)} MiB`);
}

interface Finished {
  readonly gateway: Awaited<ReturnType<typeof startGateway>>;
  readonly rss: readonly number[];
  readonly files: number;
  readonly folder: string;
}

/** After the last request: what was not released? */
async function finish({ gateway, rss, files, folder }: Finished): Promise<void> {
  const problems = [...wrongs];
  const check = (holds: boolean, what: string): void => {
    console.log(`${holds ? "ok  " : "FAIL"} ${what}`);
    if (!holds) problems.push(what);
  };
  check((counts.get("WRONG") ?? 0) === 0, `every client got a right answer or a right error`);
  check((counts.get("complete") ?? 0) > CLIENTS, `${complete.size} answers came whole`);
  const settled = await settleFiles(gateway.pid, files);
  check(settled <= files + 5, `no connection is left: ${files} open files before, ${settled} after`);
  const minute = Math.min(60, Math.floor(SECONDS / 5));
  const [early, late] = [median(rss.slice(minute, minute + 10)), median(rss.slice(-10))];
  check(
    late < 1.3 * early,
    `memory is flat: ${early.toFixed(0)} MiB after ${minute} s, ${late.toFixed(0)} at the end`,
  );
  check((await gateway.stop()) === 0, "the gateway ends well after a signal");
  check(!gateway.stderr().includes("failed inside"), "nothing failed inside");
  const verified = await run({ folder }, "ledger", "verify", "--ledger", `${folder}/ledger.jsonl`);
  check(verified.status === 0, `the ledger is verified: ${(verified.stdout + verified.stderr).trim()}`);
  const lines = readLedger(`${folder}/ledger.jsonl`);
  const ids = new Set(lines.map((line) => line["id"]));
  check(ids.size === lines.length, `${lines.length} lines, none twice`);
  const whole = new Set(lines.flatMap((line) => (line["outcome"] === "complete" ? [line["id"]] : [])));
  check(
    [...complete].every((id) => whole.has(id)),
    "every whole answer has its line",
  );
  const stalls = readStalls(join(folder, STALLS));
  console.log(`the event loop was blocked for more than 10 ms ${stalls.length} times`);
  for (const { ms, names } of stalls.slice(0, SHOWN_STALLS))
    console.log(`  ${ms.toFixed(0)} ms: ${names || "the runtime itself"}`);
  for (const problem of problems) console.error(problem);
  process.exitCode = problems.length === 0 ? 0 : 1;
}

/** The end of a connection is visible only after a moment. */
async function settleFiles(pid: number, expected: number): Promise<number> {
  const until = performance.now() + 10_000;
  let now = countFiles(pid);
  while (now > expected && performance.now() < until) {
    await Bun.sleep(200);
    now = countFiles(pid);
  }
  return now;
}

await main();
