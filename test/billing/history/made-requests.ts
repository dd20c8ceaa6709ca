// Makes the same request twice: as an agent's log has it, and as the ledger has it.

import type { LogEntry } from "../../../src/billing/history/entry.ts";
import type { Identity } from "../../../src/billing/ledger/line.ts";
import type { OurLine } from "../../../src/billing/history/join.ts";

export const T = Date.parse("2026-11-20T10:00:00.000Z");

export function entryOf(more: Partial<LogEntry> = {}): LogEntry {
  return {
    tool: "codex",
    session: "s1",
    project: "/home/user/project",
    time: T + 4000,
    model: "gpt-5.5",
    usage: { input: 100, cache_read: 50, output: 10 },
    tariff: {},
    basis: "exact",
    ...more,
  };
}

/** Makes a ledger line of the request. `session`, `tool` and `inferred` go into its `client`. */
export function lineOf(more: Partial<Omit<OurLine, "client">> & Identity = {}): OurLine {
  const { tool = "codex", session = "s1", inferred, ...others } = more;
  return {
    row: 1,
    time: T,
    ended: T + 4000,
    client: { tool, session, inferred, label: "project" },
    model: "gpt-5.5",
    upstream_model: "gpt-5.5-2026-04-24",
    usage: { input: 100, cache_read: 50, output: 10 },
    basis: "exact",
    ...others,
  };
}
