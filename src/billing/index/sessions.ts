// A row for each session: its sums, which limits and the status line need at a start, however long the ledger is. They
// are kept as text, because an amount may have any size.

import { z } from "zod";

import { parseJson } from "../../lib/json/json.ts";
import { addUsd, formatUsd, parseUsd, subtractUsd, ZERO_USD } from "../../lib/money.ts";
import type { Row } from "../ledger/row.ts";
import type { SessionSum } from "../ledger/sums/session-sums.ts";
import { CACHE_READ_KINDS, PROMPT_KINDS } from "../usage.ts";
import type { LedgerIndex } from "./ledger-index.ts";
import type { IndexDatabase } from "./schema.ts";

const PROMPT: ReadonlySet<string> = new Set(PROMPT_KINDS);
const CACHE_READ: ReadonlySet<string> = new Set(CACHE_READ_KINDS);

const sumSchema = z.lazy(() =>
  z.object({
    charged: z.string(),
    estimated: z.string(),
    requests: z.number(),
    input: z.number(),
    cached: z.number(),
    key: z.string(),
    model: z.string(),
    lastUsed: z.string(),
  }),
);

const NOTHING: SessionSum = {
  charged: ZERO_USD,
  estimated: ZERO_USD,
  requests: 0,
  input: 0,
  cached: 0,
  key: "",
  model: "",
  lastUsed: "",
};

const FIND_SUMS = "SELECT sums FROM sessions WHERE session = ?";

interface Change {
  readonly sum: SessionSum;
  /** The number of its last line. */
  readonly line: number;
}

/** What new lines add to the sums of their sessions. */
export class SessionChanges {
  readonly #changes = new Map<string, Change>();

  get size(): number {
    return this.#changes.size;
  }

  add(row: Row, line: number): void {
    const session = row.client?.session;
    if (session === undefined) return;
    const known = this.#changes.get(session);
    const isRequest = row.was === null;
    this.#changes.set(session, {
      sum: addSums(known?.sum ?? NOTHING, readSum(row)),
      line: isRequest ? line : (known?.line ?? 0),
    });
  }

  write(database: IndexDatabase): void {
    for (const [session, { sum, line }] of this.#changes) {
      const [[text] = []] = database.query(FIND_SUMS).values(session);
      const whole = typeof text === "string" ? addSums(decodeSum(text), sum) : sum;
      database
        .query(
          "INSERT INTO sessions VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET sums = excluded.sums, line = max(line, excluded.line)",
        )
        .run(session, encodeSum(whole), line);
    }
    this.#changes.clear();
  }
}

/** What one line adds. */
function readSum({ was, usage, key, model, time, limit, replaced, ...row }: Row): SessionSum {
  const charge = row.charge ?? ZERO_USD;
  const before = was?.charge ?? ZERO_USD;
  const estimated = limit === null ? ZERO_USD : subtractUsd(limit, charge);
  const amounts = {
    charged: subtractUsd(charge, before),
    estimated: replaced === null ? estimated : addUsd(estimated, subtractUsd(before, replaced.limit)),
  };
  if (was !== null) return { ...NOTHING, ...amounts };
  const count = (kinds: ReadonlySet<string>): number =>
    usage.reduce((sum, [kind, tokens]) => sum + (kinds.has(kind) ? tokens : 0), 0);
  return {
    ...amounts,
    requests: 1,
    input: count(PROMPT),
    cached: count(CACHE_READ),
    key,
    model,
    lastUsed: time,
  };
}

function addSums(sum: SessionSum, more: SessionSum): SessionSum {
  const { key, model, lastUsed } = more.lastUsed >= sum.lastUsed ? more : sum;
  return {
    charged: addUsd(sum.charged, more.charged),
    estimated: addUsd(sum.estimated, more.estimated),
    requests: sum.requests + more.requests,
    input: sum.input + more.input,
    cached: sum.cached + more.cached,
    key,
    model,
    lastUsed,
  };
}

function encodeSum({ charged, estimated, ...sum }: SessionSum): string {
  return JSON.stringify({ ...sum, charged: formatUsd(charged), estimated: formatUsd(estimated) });
}

function decodeSum(text: string): SessionSum {
  const { charged, estimated, ...sum } = sumSchema.parse(parseJson(text));
  return { ...sum, charged: parseUsd(charged), estimated: parseUsd(estimated) };
}

/** The sessions of the last lines, at most `most`, the last one at the end. */
export function listSessionSums({ parts }: LedgerIndex, most: number): Map<string, SessionSum> {
  const sums = new Map<string, SessionSum>();
  const [file] = parts;
  for (const part of parts) {
    const rows = part.list("SELECT session, sums FROM sessions ORDER BY line DESC LIMIT ?", most);
    for (const [name, text] of rows.toReversed()) {
      const session = String(name);
      const sum = decodeSum(String(text));
      const before = part === file ? [] : (file?.list(FIND_SUMS, session)[0] ?? []);
      // The session that was used last comes last.
      sums.delete(session);
      sums.set(session, typeof before[0] === "string" ? addSums(decodeSum(before[0]), sum) : sum);
    }
  }
  return sums;
}
