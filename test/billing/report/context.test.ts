// What prompts consisted of: the files of notes, and the sums over them.

import { describe, expect, test } from "bun:test";
import {
  appendFileSync,
  existsSync,
  readFileSync,
  statSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";

import {
  MAX_FOLDER_BYTES,
  markOf,
  nameFile,
  nameFolder,
  openKey,
  readTurns,
  shrinkFolder,
} from "../../../src/billing/report/context/file.ts";
import { describeContext, nameServer } from "../../../src/billing/report/context/report.ts";
import { encodeLine, GENESIS } from "../../../src/billing/ledger/line.ts";
import { readRow } from "../../../src/billing/ledger/row.ts";
import { createContextNotes } from "../../../src/gateway/observe/context.ts";
import type { Piece } from "../../../src/dialects/prompt/pieces.ts";
import { MESSAGES_LAYOUT } from "../../../src/dialects/prompt/layouts.ts";
import { readPieces } from "../../harness/prompt.ts";
import { formatUsd } from "../../../src/lib/money.ts";
import { makeSweptFolder } from "../../harness/temp.ts";
import { draftOf } from "../ledger/ledger-samples.ts";

const SECRET_TEXT = "the quick brown fox";
const newFolder = (): string => nameFolder(join(makeSweptFolder(), "ledger.jsonl"));
const ledgerOf = (folder: string): string => folder.replace(/\.context$/, "");

const body = (turns: number): Buffer =>
  Buffer.from(
    JSON.stringify({
      tools: [{ name: "Read" }, { name: "mcp__git__log" }],
      messages: Array.from({ length: turns }, (_, index) => [
        { role: "user", content: `${SECRET_TEXT} ${index}` },
        { role: "assistant", content: [{ type: "tool_use", id: `t${index}`, name: "Read", input: {} }] },
        {
          role: "user",
          content: [{ type: "tool_result", tool_use_id: `t${index}`, content: "x".repeat(500) }],
        },
      ]).flat(),
    }),
  );

const client = { tool: "claude-code", session: "s-1" };

function note(folder: string, sizes: readonly number[], warnings: string[] = []) {
  const notes = createContextNotes(ledgerOf(folder), (text) => warnings.push(text));
  for (const [index, turns] of sizes.entries()) {
    const pieces = readPieces(body(turns), MESSAGES_LAYOUT);
    notes.note(draftOf(`req_${index}`, { client }), pieces);
  }
  void notes.close();
}

const kindsOfTurn = (turns: number): string => `tool tool${" user call result".repeat(turns)}`;
const kindsOf = (folder: string): string[] =>
  readTurns(folder, "s-1").map(({ parts }) => parts.map(({ kind }) => kind).join(" "));

describe("the notes of a session", () => {
  test("have each part once, the turns as ranges of them, and no text", () => {
    const folder = newFolder();
    note(folder, [1, 2, 3]);
    const turns = readTurns(folder, "s-1");
    expect(turns.map(({ id, parts }) => [id, parts.length])).toEqual([
      ["req_0", 5],
      ["req_1", 8],
      ["req_2", 11],
    ]);
    expect(turns[2]?.parts.slice(0, 5).map(({ mark }) => mark)).toEqual(
      turns[0]?.parts.map(({ mark }) => mark) ?? [],
    );
    const text = readFileSync(nameFile(folder, "s-1"), "utf8");
    expect(text).not.toContain("fox");
    expect(text.match(/"result"/g)).toHaveLength(3);
    expect(statSync(nameFile(folder, "s-1")).mode & 0o777).toBe(0o600);
    expect(statSync(folder).mode & 0o777).toBe(0o700);
  });

  test("go on after a restart of the gateway, and the same parts have the same marks", () => {
    const folder = newFolder();
    note(folder, [1]);
    note(folder, [2]);
    const [first, second] = readTurns(folder, "s-1");
    expect(second?.parts[0]?.mark).toBe(first?.parts[0]?.mark ?? "");
    expect(second?.parts).toHaveLength(8);
  });

  test("that end in the middle of a line lack this line only, also if another gateway goes on", () => {
    const folder = newFolder();
    note(folder, [1, 2]);
    appendFileSync(nameFile(folder, "s-1"), '{"id":"req_9","sent":[[0,');
    expect(kindsOf(folder)).toEqual([1, 2].map(kindsOfTurn));
    note(folder, [3, 4]);
    expect(kindsOf(folder)).toEqual([1, 2, 3, 4].map(kindsOfTurn));
  });

  test("may come from two gateways at the same time", () => {
    const folder = newFolder();
    const [one, other] = [1, 2].map((turns) => {
      const apart = newFolder();
      note(apart, [turns, 3]);
      return readFileSync(nameFile(apart, "s-1"), "utf8").split("\n");
    });
    openKey(folder);
    writeFileSync(nameFile(folder, "s-1"), (one ?? []).flatMap((line, at) => [line, other?.[at]]).join("\n"));
    expect(kindsOf(folder)).toEqual([1, 2, 3, 3].map(kindsOfTurn));
  });

  test("have marks that nobody can make without the key of their folder", () => {
    const [one, other] = [newFolder(), newFolder()].map(openKey);
    expect(markOf(one!, 1)).not.toBe(markOf(other!, 1));
    expect(markOf(one!, 1)).toBe(markOf(one!, 1));
  });

  test("of the sessions that were used last stay if the folder is full", () => {
    const folder = newFolder();
    openKey(folder);
    for (const [index, name] of ["old", "new"].entries()) {
      writeFileSync(join(folder, `${name}.jsonl`), "x".repeat(1000), { mode: 0o600 });
      utimesSync(join(folder, `${name}.jsonl`), 1000 + index, 1000 + index);
    }
    expect(shrinkFolder(folder, 1500)).toBe(1000);
    expect([existsSync(join(folder, "old.jsonl")), existsSync(join(folder, "new.jsonl"))]).toEqual([
      false,
      true,
    ]);
    expect(existsSync(join(folder, "key"))).toBe(true);
  });

  test("begin anew if they were removed while the session went on", () => {
    const folder = newFolder();
    openKey(folder);
    const large = join(folder, "large.jsonl");
    writeFileSync(large, "", { mode: 0o600 });
    truncateSync(large, MAX_FOLDER_BYTES + 1);
    utimesSync(large, 4e9, 4e9);
    const notes = createContextNotes(ledgerOf(folder), () => {});
    for (const turns of [1, 2]) {
      const pieces = readPieces(body(turns), MESSAGES_LAYOUT);
      notes.note(draftOf(`req_${turns}`, { client }), pieces);
      void notes.close();
    }
    expect(kindsOf(folder)).toEqual([kindsOfTurn(2)]);
  });

  test("that cannot be written are given up with one warning", () => {
    const folder = newFolder();
    writeFileSync(folder, "in the way");
    const warnings: string[] = [];
    note(folder, [1, 2, 3], warnings);
    expect(warnings).toHaveLength(1);
    expect(warnings[0]).toStartWith("what prompts consist of is noted no more: ");
  });
});

test("a request that continues a kept conversation has the parts of the turns before it, by agent", () => {
  const folder = newFolder();
  const notes = createContextNotes(ledgerOf(folder), () => {});
  const piece = (kind: Piece["kind"], hash: number): Piece => ({ kind, name: "", size: 10, hash });
  const isContinued = true;
  const usage = { input: 9 };
  notes.note(draftOf("req_1", { client, usage }), [piece("tool", 1), piece("user", 2)]);
  notes.note(draftOf("req_2", { client: { ...client, agent: "a" } }), [piece("user", 3)], { isContinued });
  notes.note(draftOf("req_3", { client, usage }), [piece("result", 4)], { isContinued });
  expect(notes.last("s-1")?.shares).toEqual({ tool: 1 / 3, user: 1 / 3, result: 1 / 3 });
  notes.note(draftOf("req_4", { client }), [piece("user", 5)]);
  void notes.close();
  expect(kindsOf(folder)).toEqual(["tool user", "user", "tool user result", "user"]);
});

test("the last prompt of the main agent is known while the gateway runs", () => {
  const notes = createContextNotes(ledgerOf(newFolder()), () => {});
  const pieces = readPieces(body(1), MESSAGES_LAYOUT);
  expect(notes.last("s-1")).toBeNull();
  const usage = { input: 10, cache_read: 90, output: 7 };
  notes.note(draftOf("req_1", { client, usage }), pieces);
  notes.note(draftOf("req_2", { client: { ...client, agent: "a" }, usage: { input: 5 } }), pieces);
  const { tokens, shares = {} } = notes.last("s-1") ?? {};
  expect([tokens, Object.keys(shares)]).toEqual([100, ["tool", "user", "call", "result"]]);
  expect(Object.values(shares).reduce((sum, share) => sum + share, 0)).toBeCloseTo(1);
  notes.note(draftOf("req_3", { client, usage: {} }), []);
  expect(notes.last("s-1")).toEqual({ tokens: 0, shares: {} });
  void notes.close();
});

describe("the report", () => {
  const row = (id: string, usage: Record<string, number>, more = {}) =>
    readRow(encodeLine(draftOf(id, { client, usage, ...more }), GENESIS)) ?? expect.unreachable();
  const part = (kind: string, size: number, name = "", mark = `${kind}${name}`) => ({
    kind,
    name,
    size,
    mark,
  });

  test("divides the reported tokens by length, and the price by where the cache ends", () => {
    const parts = [part("tool", 100, "Read"), part("tool", 100, "mcp__git__log"), part("user", 200)];
    const turns = [{ id: "req_1", agent: "", called: [], parts }];
    // 200 tokens were read at $0.30 a million, 200 are new at $3: each tool has 100 of the first, the text all of the rest.
    const report = describeContext(turns, [row("req_1", { cache_read: 200, input: 200, output: 5000 })]);
    expect(
      report.parts.map(({ kind, name, tokens, charge }) => [kind, name, tokens, formatUsd(charge)]),
    ).toEqual([
      ["user", "", 200, "0.0006"],
      ["tool", "Read", 100, "0.00003"],
      ["tool", "mcp__git__log", 100, "0.00003"],
    ]);
    expect([report.tokens, formatUsd(report.charge)]).toEqual([400, "0.00066"]);
    expect(report.turns).toMatchObject([{ id: "req_1", tokens: { tool: 200, user: 200 } }]);
  });

  test("shares add up to what was reported, whatever the lengths are", () => {
    const parts = [1, 7, 3, 0, 11].map((size, index) => part("user", size, "", String(index)));
    const { tokens } = describeContext(
      [{ id: "req_1", agent: "", called: [], parts }],
      [row("req_1", { input: 1001 })],
    );
    expect(tokens).toBe(1001);
  });

  test("lists tools that no prompt shows a call of, and the largest results once with how often they were sent", () => {
    const first = [
      part("tool", 10, "Read"),
      part("tool", 10, "Write"),
      part("call", 10, "Read"),
      part("result", 70, "Read"),
    ];
    const turns = ["req_1", "req_2"].map((id) => ({ id, agent: "", called: [], parts: first }));
    const report = describeContext(turns, [row("req_1", { input: 100 }), row("req_2", { input: 100 })]);
    expect(report.neverCalled.map(({ name }) => name)).toEqual(["Write"]);
    expect(report.results).toMatchObject([{ name: "Read", id: "req_1", tokens: 70, sent: 2 }]);
  });

  test("a call in the last answer of a session counts, and so does a result without its call", () => {
    const folder = newFolder();
    const notes = createContextNotes(ledgerOf(folder), () => {});
    const pieces = readPieces(
      Buffer.from(
        '{"tools":[{"name":"Read"},{"name":"mcp__git__log"}],"messages":[{"role":"user","content":"x"}]}',
      ),
      MESSAGES_LAYOUT,
    );
    const tools = pieces.length > 0 ? pieces : expect.unreachable();
    notes.note(draftOf("req_1", { client }), tools, { called: ["mcp__git__log"] });
    void notes.close();
    const turns = readTurns(folder, "s-1");
    expect(turns[0]?.called).toEqual(["mcp__git__log"]);
    const rows = [row("req_1", { input: 100 })];
    expect(describeContext(turns, rows).neverCalled.map(({ name }) => name)).toEqual(["Read"]);
    const read = turns.map((turn) => ({ ...turn, parts: [...turn.parts, part("result", 5, "Read")] }));
    expect(describeContext(read, rows).neverCalled).toEqual([]);
  });

  test("counts the requests that it cannot show", () => {
    const rows = [
      row("req_1", { input: 1 }, { prices: null, official_usd: null }),
      row("req_2", { input: 1 }),
    ];
    expect(describeContext([{ id: "req_1", agent: "", called: [], parts: [] }], rows).leftOut).toBe(2);
  });

  test("knows the server of a tool by its name", () => {
    expect(["mcp__git__log", "mcp__a_b__c__d", "Read"].map(nameServer)).toEqual(["git", "a_b", null]);
  });
});
