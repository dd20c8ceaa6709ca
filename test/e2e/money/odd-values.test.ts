// A broken or dishonest upstream sends numbers in place of texts, and texts in place of counts. Even so, each
// request gets one line while the gateway runs, no estimate exceeds what arrived, and the ledger is right.

import { afterAll, beforeAll, expect, test } from "bun:test";

import { closeSync, fstatSync, openSync, readSync } from "node:fs";
import type { Answer } from "../../harness/model/answers/answer.ts";
import { Random } from "../../simulate/world/random.ts";
import { type ChildGateway, CREDENTIAL, startGateway } from "../../harness/gateway.ts";
import { PROGRAM } from "../../harness/program.ts";
import { rawRequest } from "../../harness/raw.ts";
import {
  type Behaviour,
  type DemoUpstream,
  startDemoUpstream,
} from "../../harness/upstreams/demo-upstream.ts";
import { addUsage, mutatePieces, replaceMember } from "../../harness/upstreams/mutate.ts";
import { DIALECTS, type Line, makeRequest } from "../world.ts";

const CHANNELS = ["messages", "responses", "content", "chat"] as const;
const GROUPS = ["messages", "responses", "content"] as const;
const PAIRS = DIALECTS.flatMap((client) => CHANNELS.map((channel) => ({ client, channel })));

function makePairs(url: string): Record<string, unknown> {
  const pairs = GROUPS.flatMap((platform) =>
    CHANNELS.map((channel) => ({ name: `${platform}-${channel}`, platform, channel })),
  );
  return {
    channels: Object.fromEntries(
      CHANNELS.map((platform) => [platform, { platform, base_url: url, credential: CREDENTIAL }]),
    ),
    groups: Object.fromEntries(
      pairs.map(({ name, platform, channel }) => {
        const group = { platform, multiplier: "1", channels: [channel] };
        return [name, platform === channel ? group : { ...group, convert: true }];
      }),
    ),
    keys: pairs.map(({ name }) => ({ name, group: name, secret: secretOf(name) })),
  };
}

const secretOf = (name: string): string => `sk-odd-values-${name}`;

let upstream: DemoUpstream;
let gateway: ChildGateway;

beforeAll(async () => {
  upstream = startDemoUpstream({ credential: CREDENTIAL });
  gateway = await startGateway({ config: makePairs(upstream.url) });
});

afterAll(async () => {
  await gateway.stop();
  upstream.stop();
});

/** How long to wait for a line. It is written when the upstream's answer ends: maybe long after a refusal. */
const LINE_MS = 20_000;

/** Sends one request in the client's dialect to the channel. Returns its lines. */
async function ask(
  { client, channel }: (typeof PAIRS)[number],
  { stream, behaviour }: { readonly stream: boolean; readonly behaviour: Behaviour },
): Promise<readonly Line[]> {
  upstream.next(behaviour);
  const platform = client === "chat" ? "responses" : client;
  const request = makeRequest(client, stream);
  const fields = { authorization: `Bearer ${secretOf(`${platform}-${channel}`)}` };
  const { status, fields: answered } = await rawRequest(gateway.port, { ...request, fields });
  if (status === 500) throw new Error(`${client} from ${channel}: the gateway failed by a fault of its own`);
  const id = answered.find(([name]) => name.toLowerCase() === "x-request-id")?.[1] ?? "none";
  const until = performance.now() + LINE_MS;
  for (;;) {
    // The gateway writes the line in the turn in which the upstream's answer ends, and answers /healthz after that.
    await fetch(`${gateway.url}/healthz`);
    const lines = readLast(`"id":"${id}"`);
    if (lines.length > 0 || performance.now() > until) return lines;
  }
}

/** More bytes than a line has. Reading the whole ledger each time would take most of a long run. */
const LAST_BYTES = 1 << 20;

function readLast(wanted: string): Line[] {
  const path = gateway.folder.join("ledger.jsonl");
  const file = openSync(path, "r");
  const { size } = fstatSync(file);
  const bytes = Buffer.alloc(Math.min(size, LAST_BYTES));
  readSync(file, bytes, 0, bytes.length, size - bytes.length);
  closeSync(file);
  if (!bytes.includes(wanted)) return [];
  const lines = bytes.toString().split("\n").slice(0, -1);
  return lines.filter((line) => line.includes(wanted)).map((line) => JSON.parse(line));
}

const findFault = () => /.*failed inside.*/.exec(gateway.stderr());

function verify(): string {
  const path = gateway.folder.join("ledger.jsonl");
  const { exitCode, stdout } = Bun.spawnSync([...PROGRAM, "ledger", "verify", "--ledger", path]);
  return exitCode === 0 ? "right" : stdout.toString();
}

function textOf({ pieces }: Answer): string[] {
  return pieces.map((piece) => Buffer.from(piece).toString());
}

const withPieces = (answer: Answer, pieces: readonly string[]): Answer => ({
  ...answer,
  pieces: pieces.map((piece) => Buffer.from(piece)),
});

/** Removes the counts of output, and cuts a stream before its end. */
function hideCounts(pieces: readonly string[], stream: boolean): string[] {
  const counts = /"((?:output|completion)_tokens|candidatesTokenCount)":\d+/g;
  return pieces.slice(0, stream ? -2 : undefined).map((piece) => piece.replaceAll(counts, '"$1":"?"'));
}

const TEXTS: ReadonlySet<string> = new Set(["text", "content", "thinking", "delta", "arguments"]);
const ODD = ["9223372036854775808", "[1e999]", '{"text":1e300}', "5000000"];

test.each(PAIRS)(
  "P122, P134: a request has one line and no inflated estimate if a $channel answer to a $client client has an odd value",
  async (pair) => {
    // Each client and each channel gets both streams and JSON answers.
    const stream = (DIALECTS.indexOf(pair.client) + CHANNELS.indexOf(pair.channel)) % 2 === 1;
    for (let index = 0, count = 1; index < count; index += 1) {
      const odd = ODD[(index + PAIRS.indexOf(pair)) % ODD.length]!;
      let [name, bytes] = ["", 0];
      const alter = (answer: Answer): Answer => {
        const texts = addUsage(textOf(answer));
        const names = new Set(Array.from(texts.join("").matchAll(/"(\w+)":/g), ([, found = ""]) => found));
        count = names.size;
        name = [...names][index]!;
        const changed = replaceMember(texts, name, odd);
        if (!TEXTS.has(name)) return withPieces(answer, changed);
        const pieces = hideCounts(changed, stream);
        bytes = pieces.join("").length;
        return { ...withPieces(answer, pieces), framing: stream ? "close" : answer.framing };
      };
      const lines = await ask(pair, { stream, behaviour: { alter } });
      const { output = 0 } = Object(lines[0]?.["usage"]);
      const isSmall = output <= Math.max(bytes / 4, 100) && Number(lines[0]?.["charge_usd"]) < 0.1;
      if (lines.length !== 1 || (TEXTS.has(name) && !isSmall))
        throw new Error(`${name} is ${odd}: ${JSON.stringify(lines)}`);
    }
    expect(findFault()).toBeNull();
  },
  30_000,
);

const SEED = process.env["ODD_VALUES_SEED"] ?? "1";
const MOST_MS = Number(process.env["ODD_VALUES_SECONDS"] ?? 0) * 1000;
const MIN_REQUESTS = 8 * PAIRS.length;

test(
  "P122: each answer with values changed at random has one line, and ledger verify finds no fault",
  async () => {
    const until = performance.now() + MOST_MS;
    for (let number = 0; number < MIN_REQUESTS || performance.now() < until; number += 1) {
      const pair = PAIRS[number % PAIRS.length]!;
      const random = new Random("odd values", SEED, number);
      const stream = random.chance(600);
      const alter = (answer: Answer): Answer => {
        const texts = textOf(answer);
        const pieces = mutatePieces(random.chance(500) ? addUsage(texts) : texts, SEED, number);
        const cut = random.chance(300) ? pieces.slice(0, random.between(1, pieces.length)) : pieces;
        return { ...withPieces(answer, cut), framing: cut.length < pieces.length ? "close" : answer.framing };
      };
      const lines = await ask(pair, { stream, behaviour: { alter } });
      if (lines.length !== 1)
        throw new Error(`${lines.length} lines: ODD_VALUES_SEED=${SEED}, request ${number}`);
      if (number % 5000 === 0) expect(verify()).toBe("right");
    }
    // These checks cover the lines of the first test, too.
    expect([findFault(), verify()]).toEqual([null, "right"]);
    const ids = gateway.ledger().map((line) => line["id"]);
    expect(new Set(ids).size).toBe(ids.length);
    expect(ids.length).toBe(upstream.requests.length);
  },
  2 * MOST_MS + 60_000,
);
