import { describe, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";

import { array, assert, boolean, constantFrom, property, record } from "fast-check";

import { findLastSession, listSessions } from "../../../src/billing/report/find.ts";
import {
  type ClientIdentity,
  encodeCorrection,
  encodeLine,
  GENESIS,
  hashLine,
} from "../../../src/billing/ledger/line.ts";
import { describeTotals, openTotals, sumLedger, addTotals } from "../../../src/billing/report/report.ts";
import { type AgentTotals, listTree, listTurns, sumSessions } from "../../../src/billing/report/sessions.ts";
import { draftOf, newLedgerPath, readIndex } from "../ledger/ledger-samples.ts";

interface Sample {
  readonly client: ClientIdentity | undefined;
  readonly usd: string;
  readonly isCorrected: boolean;
  readonly isQuoted: boolean;
}

/** A ledger with a line for each sample, and its corrections at the end. */
function writeSamples(samples: readonly Sample[]): string {
  const path = newLedgerPath();
  let prev = GENESIS;
  let bytes = "";
  const add = (text: string): void => {
    prev = hashLine(text);
    bytes += `${text}\n`;
  };
  const drafts = samples.map(({ client, usd, isQuoted }, index) => {
    // Escapes are read by JSON, everything else by the fast reader.
    const label = isQuoted ? { label: 'a "label"' } : {};
    const time = new Date(Date.UTC(2026, 10, 20) + index * 60_000).toISOString();
    return draftOf(`req_${index}`, {
      time,
      client: client && { ...client, ...label },
      charge_usd: usd,
      official_usd: usd,
    });
  });
  for (const draft of drafts) add(encodeLine(draft, prev));
  for (const [index, { isCorrected }] of samples.entries()) {
    const draft = drafts[index]!;
    if (!isCorrected) continue;
    const { key, group, platform, channel, model, client, usage, prices, price_source, tier, multiplier } =
      draft;
    const origin = {
      key,
      group,
      platform,
      channel,
      model,
      client,
      usage,
      prices,
      price_source,
      tier,
      multiplier,
    };
    const was = { official_usd: draft.official_usd, charge_usd: draft.charge_usd };
    const place = { id: `cor_${index}`, time: draft.time, corrects: draft.id, request_time: draft.time };
    add(encodeCorrection({ ...place, ...origin, official_usd: "2.5", charge_usd: "2.5", was }, prev));
  }
  writeFileSync(path, bytes);
  return path;
}

const clients = constantFrom<(ClientIdentity | undefined)[]>(
  undefined,
  {},
  { tool: "curl" },
  { tool: "codex", session: "s1" },
  { tool: "codex", session: "s1", agent: "a1" },
  { tool: "claude-code", session: "s2", agent: "a1", parent: "a0", label: "größe" },
  { tool: "gemini-cli", session: "inferred-1", inferred: true },
);
const samples = array(
  record({
    client: clients,
    usd: constantFrom("0", "0.000000000001", "1.1", "99999.999999999999"),
    isCorrected: boolean(),
    isQuoted: boolean(),
  }),
  { maxLength: 40 },
);

const ALL = { since: null, until: null };

describe("sums by session, agent, tool and label", () => {
  test("add up to the total exactly, with corrections and lines of older versions", () => {
    assert(
      property(samples, (each) => {
        const path = writeSamples(each);
        const { total } = sumLedger(readIndex(path), { ...ALL, by: ["model"] });
        for (const by of ["session", "agent", "tool", "label"] as const) {
          const report = sumLedger(readIndex(path), { ...ALL, by: [by, "key"] });
          expect(describeTotals(report.total)).toEqual(describeTotals(total));
        }
        const sessions = sumSessions(readIndex(path), ALL);
        expect(describeTotals(sessions.total)).toEqual(describeTotals(total));
        const agents = openTotals();
        for (const { totals } of sessions.rows)
          for (const agent of totals.agents.values()) addTotals(agents, agent);
        expect(describeTotals(agents)).toEqual(describeTotals(total));
      }),
      { numRuns: 60, seed: 3 },
    );
  });

  test("the charges of a session's turns add up to what the session cost", () => {
    const client = { tool: "codex", session: "s1" };
    const path = writeSamples([
      { client, usd: "1.5", isCorrected: false, isQuoted: false },
      { client: { ...client, agent: "a1" }, usd: "1", isCorrected: true, isQuoted: true },
      { client: { session: "s2" }, usd: "7", isCorrected: false, isQuoted: false },
    ]);
    expect(listTurns(readIndex(path), "s1")).toMatchObject([
      { id: "req_0", agent: "", charge: "1.5", input: 11_432, cached: 11_000, output: 350 },
      { id: "req_1", agent: "a1", charge: "2.5" },
    ]);
    const { rows } = sumSessions(readIndex(path), { ...ALL, only: { session: "s1" } });
    expect(rows.map(({ totals }) => describeTotals(totals))).toMatchObject([
      { requests: 2, charge_usd: "4" },
    ]);
  });
});

describe("a session is found", () => {
  const session = (id: string) => ({
    client: { session: id },
    usd: "1",
    isCorrected: false,
    isQuoted: false,
  });
  const path = writeSamples([
    session("ab"),
    session("abc"),
    session("b"),
    { ...session(""), client: undefined },
  ]);

  test("by its beginning, and by its whole id even if that begins others", () => {
    expect(listSessions(readIndex(path), "a", 10)).toEqual(["ab", "abc"]);
    expect(listSessions(readIndex(path), "a", 1)).toEqual(["ab"]);
    expect(listSessions(readIndex(path), "ab", 1)).toEqual(["ab"]);
    expect(listSessions(readIndex(path), "abc", 10)).toEqual(["abc"]);
    expect(listSessions(readIndex(path), "x", 10)).toEqual([]);
  });

  test("as the one of the last request that has a session", () => {
    expect(findLastSession(path)).toBe("b");
    const none = Array.from({ length: 100 }, () => ({ ...session(""), client: undefined }));
    expect(findLastSession(writeSamples([session("first"), ...none]))).toBe("first");
    expect(findLastSession(writeSamples(none))).toBe(null);
  });
});

describe("the tree of agents", () => {
  const agentsOf = (parents: Record<string, string | null>): ReadonlyMap<string, AgentTotals> =>
    new Map(
      Object.entries(parents).map(([name, parent]) => [
        name,
        { ...openTotals(), parent, model: "m", latest: null, misses: [] },
      ]),
    );
  const draw = (parents: Record<string, string | null>): string[] =>
    listTree(agentsOf(parents)).map(
      ({ name, branches }) => branches.map((more) => (more ? "+" : "-")).join("") + name,
    );

  test("has each agent once, below the one that started it", () => {
    expect(draw({ "": null, a: null, c: "b", b: "a", d: null })).toEqual(["", "+a", "+-b", "+--c", "-d"]);
  });

  test("puts an agent of an unknown parent below the main agent, which may have made no request", () => {
    expect(draw({ a: "gone", b: "a" })).toEqual(["", "-a", "--b"]);
    expect(listTree(agentsOf({ a: "gone" }))[0]).toEqual({ name: "", totals: null, branches: [] });
  });

  test("keeps agents that name themselves or each other as parents", () => {
    expect(draw({ a: "a", b: "c", c: "b" })).toEqual(["", "-a", "-b", "--c"]);
  });

  test("of a hundred thousand agents, each started by the one before, is listed in time", () => {
    const names = Array.from({ length: 100_000 }, (_, index) => `a${index}`);
    const chain = Object.fromEntries(names.map((name, index) => [name, names[index - 1] ?? null]));
    const places = listTree(agentsOf(chain));
    expect(places).toHaveLength(100_001);
    expect(Math.max(...places.map(({ branches }) => branches.length))).toBe(16);
  });
});
