// What a user of a real tool waits and sees when the only channel of the group fails, beside the same tool without a
// gateway. `REAL_CLIS=FOLDER bun test test/e2e/real-clis/refusals.test.ts` prints the table of docs/failures.md. It takes
// half an hour, most of which the tools wait. REFUSALS="codex 503" runs only the cases whose title matches.

import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Answer } from "../../harness/model/answers/answer.ts";
import { startDemoUpstream } from "../../harness/upstreams/demo-upstream.ts";
import { keyOf, makeConfig, type Platform, startGateway } from "../../harness/gateway.ts";
import { makeTempFolder, type TempFolder } from "../../harness/temp.ts";
import { hasTool, startProgram, WANTED } from "./installed.ts";
import { PROGRAM } from "../../harness/program.ts";
import { type Maker, type Refusal, REFUSALS } from "./refusals.ts";

const MAX_MS = 200_000;
/** A tool may wait this much longer than without a gateway. */
const TOLERANCE_S = 5;
/** Claude Code and opencode look at these first. */
const LISTS = new Set(["/v1/models", "/v1beta/models"]);
/** How many pairs of runs at once: the tools need a processor when they start, and then they wait. */
const AT_ONCE = Number(process.env["REFUSALS_AT_ONCE"] ?? 4);
const ONLY = new RegExp(process.env["REFUSALS"] ?? "");

const RUNS: ReadonlyArray<
  readonly [tool: string, platform: Platform, maker: Maker, args: readonly string[]]
> = [
  ["claude", "messages", "anthropic", ["-p", "hello"]],
  ["codex", "responses", "openai", ["exec", "--skip-git-repo-check", "hello"]],
  ["gemini", "content", "google", ["-p", "hello"]],
  ["opencode", "messages", "anthropic", ["run", "hello"]],
  ["opencode", "responses", "openai", ["run", "hello"]],
  ["opencode", "content", "google", ["run", "hello"]],
];

interface Seen {
  /** When the upstream got the requests, in seconds after the first. */
  readonly arrivals: readonly number[];
  /** From the first request to the tool's end. */
  readonly seconds: number;
  readonly requests: number;
  readonly text: string;
  readonly wasEnded: boolean;
}

interface Row {
  readonly title: string;
  readonly direct: Seen;
  readonly through: Seen;
}

interface Case {
  readonly tool: string;
  readonly platform: Platform;
  readonly args: readonly string[];
  readonly refusal: Refusal;
}

describe.skipIf(WANTED === "")("the only channel of the group fails", () => {
  let folder: TempFolder;
  const rows: Row[] = [];
  const seats = makeSeats(AT_ONCE);

  beforeAll(() => {
    folder = makeTempFolder();
  });

  afterAll(() => {
    folder.remove();
    console.log(formatTable(rows));
    const path = process.env["REFUSALS_OUT"];
    if (path !== undefined) writeFileSync(path, JSON.stringify(rows, null, 1));
  });

  for (const [tool, platform, maker, args] of RUNS) {
    for (const refusal of REFUSALS[maker]) {
      const title = `${tool} (${platform}): ${refusal.status} ${refusal.name}`.trim();
      test.concurrent.skipIf(!ONLY.test(title) || !hasTool(tool))(
        title,
        () =>
          seats(async () => {
            const run = { tool, platform, args, refusal };
            const [direct, through] = await Promise.all([runDirect(run), runThrough(run)]);
            rows.push({ title, direct, through });
            expectNoLonger(run, through, direct);
            if (!direct.wasEnded) expect(through.text).toContain(findReason(run, direct));
            if (!isCredential(refusal)) expect(through.requests).toBe(direct.requests);
          }),
        60 * 60_000,
      );
    }
  }
});

/** opencode still waits for random times, up to a quarter longer, and looks for updates before it ends. */
function expectNoLonger({ tool }: Case, through: Seen, direct: Seen): void {
  if (tool !== "opencode") expect(through.seconds).toBeLessThan(direct.seconds + TOLERANCE_S);
  else expect(through.arrivals.at(-1)).toBeLessThan((direct.arrivals.at(-1) ?? 0) * 1.25 + TOLERANCE_S);
}

function isCredential({ status, name }: Refusal): boolean {
  return status === 401 || name === "account";
}

/** What the user must see: the upstream's message if the tool shows it without a gateway, and otherwise what it shows. */
function findReason({ refusal }: Case, direct: Seen): string {
  if (isCredential(refusal)) return "refused the gateway's credential";
  return direct.text.includes(refusal.message) ? refusal.message : lastLine(direct);
}

function makeSeats(count: number) {
  const waiting: (() => void)[] = [];
  let free = count;
  return async (work: () => Promise<void>): Promise<void> => {
    if (free === 0) await new Promise<void>((resolve) => waiting.push(resolve));
    else free -= 1;
    try {
      await work();
    } finally {
      const next = waiting.shift();
      if (next === undefined) free += 1;
      else next();
    }
  };
}

function answerOf({ status, fields, type, body }: Refusal): Answer {
  return {
    family: "messages",
    status,
    fields: [["content-type", type], ...fields],
    pieces: [Buffer.from(body)],
    framing: "length",
  };
}

function startRefusingUpstream(refusal: Refusal) {
  const arrivals: number[] = [];
  const upstream = startDemoUpstream({ records: false });
  upstream.always({
    answer: () => {
      arrivals.push(performance.now());
      return answerOf(refusal);
    },
    when: ({ method }) => method === "POST",
  });
  return { ...upstream, arrivals };
}

async function runDirect(run: Case): Promise<Seen> {
  using folder = makeTempFolder();
  const upstream = startRefusingUpstream(run.refusal);
  await Bun.write(folder.join("gateway.yaml"), JSON.stringify(makeConfig(upstream)));
  const where = ["--config", folder.join("gateway.yaml"), "--url", upstream.url];
  const seen = await runTool(run, { where, folder: folder.path, arrivals: upstream.arrivals });
  upstream.stop();
  return { ...seen, requests: upstream.arrivals.length };
}

async function runThrough(run: Case): Promise<Seen> {
  using folder = makeTempFolder();
  const upstream = startRefusingUpstream(run.refusal);
  const gateway = await startGateway({
    config: makeConfig(upstream),
    env: { XDG_RUNTIME_DIR: folder.path },
    command: PROGRAM,
  });
  const where = ["--config", gateway.configPath];
  const seen = await runTool(run, { where, folder: folder.path, arrivals: upstream.arrivals });
  const requests = gateway.records().filter(({ endpoint }) => !LISTS.has(endpoint)).length;
  await gateway.stop();
  upstream.stop();
  return { ...seen, requests };
}

/** Most tools wait for a random time between two attempts: it differs by tens of seconds from run to run. */
function fixRandom(folder: string): Record<string, string> {
  const path = join(folder, "not-random.cjs");
  writeFileSync(path, "Math.random = () => 0.5;\n");
  return { BUN_OPTIONS: `--preload ${path}`, NODE_OPTIONS: `--require ${path}` };
}

interface Place {
  readonly where: readonly string[];
  readonly folder: string;
  readonly arrivals: readonly number[];
}

/** Both kinds of run start the tool with the same settings: only the address differs. */
async function runTool({ tool, platform, args }: Case, { where, folder, arrivals }: Place) {
  const words = ["run", "--yes", ...where, "--secret", keyOf(platform), tool, ...args];
  const around = { folder, env: fixRandom(folder), mostIdleMs: MAX_MS };
  const { stdout, stderr, wasEnded } = await startProgram([...PROGRAM, ...words], around);
  const [first = 0] = arrivals;
  const seconds = (performance.now() - first) / 1000;
  return {
    arrivals: arrivals.map((at) => (at - first) / 1000),
    seconds,
    text: tidy(`${stderr}\n${stdout}`),
    wasEnded,
  };
}

/** Without what differs from run to run. */
function tidy(text: string): string {
  return Bun.stripANSI(text)
    .replaceAll(/127\.0\.0\.1:\d+/g, "HOST")
    .replaceAll(/request id: \w+/g, "request id: ID")
    .replaceAll(/\n+/g, "\n")
    .trim();
}

function formatTable(rows: readonly Row[]): string {
  const cell = ({ seconds, requests, wasEnded }: Seen): string =>
    `${wasEnded ? "> " : ""}${seconds.toFixed(1)} | ${requests}`;
  return rows
    .toSorted((a, b) => a.title.localeCompare(b.title))
    .map(
      ({ title, direct, through }) =>
        `| ${title} | ${cell(direct)} | ${cell(through)} | ${lastLine(through)} |`,
    )
    .join("\n");
}

/** Gemini CLI ends with a line that says nothing. */
function lastLine({ text }: Seen): string {
  const lines = text.split("\n").filter((line) => !line.includes("[object Object]") && line.length > 1);
  const [, said] =
    /"message":"(.*?)(?<!\\)"/.exec(lines.findLast((line) => line.includes('"message":')) ?? "") ?? [];
  return (said ?? lines.at(-1) ?? "").slice(0, 200);
}
