// Tests `gateway context`, which shows what the prompts of a session cost, even if a plan pays for them.

import { expect, test } from "bun:test";
import { existsSync, readdirSync, rmSync, symlinkSync } from "node:fs";
import { keyOf, makeConfig, startGateway } from "../../../harness/gateway.ts";
import { makeTempFolder } from "../../../harness/temp.ts";
import { startDemoUpstream } from "../../../harness/upstreams/demo-upstream.ts";
import { nameFolder } from "../../../../src/billing/reports/context-notes.ts";
import type { Piece } from "../../../../src/dialects/prompt/blocks.ts";
import { Contexts } from "../../../../src/gateway/observe/context.ts";
import { draftOf } from "../../../billing/ledger/ledger-samples.ts";
import { run, writeLedger } from "../ledger/ledger-runs.ts";

const client = { tool: "claude-code", session: "s-1" };
const time = "2026-11-20T10:00:00.000Z";
const plan = { paid_by: "plan", multiplier: "0", charge_usd: "0", limit_usd: "0.0012" } as const;
const usage = { input: 400 };
const path = writeLedger([
  { id: "req_1", time, client, usage, official_usd: "0.0012", ...plan },
  { id: "req_2", time, client, usage, official_usd: "0.0012", charge_usd: "0.0012" },
]);

const pieces: readonly Piece[] = [
  { kind: "tool", name: "mcp__git__log", size: 100, hash: 1 },
  { kind: "user", name: "", size: 100, hash: 2 },
  { kind: "result", name: "Read", size: 200, hash: 3 },
];
const notes = new Contexts(path, () => expect.unreachable());
for (const id of ["req_1", "req_2"]) notes.note(draftOf(id, { client, usage }), pieces);
notes.close();

test("`context` shows official amounts next to charges, because a plan's session has no charges", async () => {
  const { status, stdout, stderr } = await run("context", "--ledger", path);
  expect([status, stdout.trimEnd().split("\n")]).toEqual([
    0,
    [
      "Session s-1: 2 prompts",
      "",
      "PART                  SENT  TOKENS  SHARE  OFFICIAL $  CHARGED $",
      "results of Read          2     400    50%    0.001200   0.000600",
      "tools of git             2     200    25%    0.000600   0.000300",
      "messages of the user     2     200    25%    0.000600   0.000300",
      "total                          800   100%    0.002400   0.001200",
      "",
      "LARGEST RESULTS  FIRST IN  TOKENS  SENT  OFFICIAL $  CHARGED $",
      "Read             1            200     2    0.001200   0.000600",
      "",
      "Unused tools cost $0.000600 (official): mcp__git__log",
    ],
  ]);
  expect(stderr).toStartWith("Estimated: ");
});

test("`context servers` shows what the tools of each MCP server cost, by official and charged amounts", async () => {
  const { stdout } = await run("context", "servers", "--ledger", path);
  expect(stdout.trimEnd().split("\n")).toEqual([
    "MCP SERVER  TOOLS  CALLED  SESSIONS  TOKENS  OFFICIAL $  CHARGED $",
    "git             1       0         1     200    0.000600   0.000300",
  ]);
});

test("P192: if somebody replaces the folder of notes by a link, no note is written through the link", () => {
  using folder = makeTempFolder();
  using victim = makeTempFolder();
  const place = nameFolder(folder.join("ledger.jsonl"));
  const warnings: string[] = [];
  const late = new Contexts(folder.join("ledger.jsonl"), (text) => warnings.push(text));
  late.note(draftOf("req_1", { client, usage }), pieces);
  rmSync(place, { recursive: true });
  symlinkSync(victim.path, place);
  late.close();
  new Contexts(folder.join("ledger.jsonl"), (text) => warnings.push(text)).note(draftOf("r", { client }), []);
  expect(readdirSync(victim.path)).toEqual([]);
  expect(warnings).toEqual(Array(2).fill(expect.stringContaining(`${place} is a link`)));
});

test.each([
  ["on", {}],
  ["off", {}],
  ["on", { thread: { type: "continue", previous_message_id: "msg_1" } }],
])(
  "a request leaves notes only if `context` is on and it continues no thread: `context: %s` and %o in the body",
  async (context, more) => {
    const upstream = startDemoUpstream({ platform: "messages" });
    using folder = makeTempFolder();
    const gateway = await startGateway({ config: makeConfig(upstream, { context }), folder });
    const headers = {
      "x-api-key": keyOf("messages"),
      "content-type": "application/json",
      "x-session-id": "s-1",
    };
    const body = JSON.stringify({
      model: "claude-haiku-4-5",
      max_tokens: 9,
      messages: [{ role: "user", content: "Hi" }],
      ...more,
    });
    expect((await fetch(`${gateway.url}/v1/messages`, { method: "POST", headers, body })).status).toBe(200);
    await gateway.stop();
    const isKnown = context === "on" && !("thread" in more);
    const { stderr } = await run("context", "s-1", "--ledger", folder.join("ledger.jsonl"));
    expect(stderr.includes("the upstream keeps the conversation")).toBe(!isKnown);
    expect(existsSync(nameFolder(folder.join("ledger.jsonl")))).toBe(isKnown);
    upstream.stop();
  },
);
