// The JSON of reports: prices, usage, sessions, cache, the ledger, and live requests.

import { z } from "zod";
import { clientSchema, correctionSchema, lineSchema } from "../../../src/billing/ledger/line.ts";

export const moment = z.string().meta({ format: "date-time" });
export const decimal = z.string().regex(/^-?\d+(\.\d+)?$/);

const totals = z.looseObject({
  requests: z.int(),
  usage: z.record(z.string(), z.int()),
  official_usd: decimal,
  charge_usd: decimal,
  /** What a plan paid, by official prices, and what its account is billed for beyond it: no part of a charge. */
  paid_by_plan_usd: decimal.optional(),
  plan_overage_usd: decimal.optional(),
  cache_hit_rate: z.number().nullable(),
  unpriced: z.int(),
  unknown: z.int(),
  partial: z.int(),
});

const rates = z.record(z.string(), decimal);
export const prices = z.looseObject({
  model: z.string(),
  book: z.string(),
  date: z.string(),
  config: rates.nullable(),
  providers: z.array(
    z.looseObject({
      provider: z.string(),
      ids: z.array(z.string()),
      source: z.string(),
      channels: z.array(z.string()),
      periods: z.array(
        z.looseObject({
          from: moment.nullable(),
          until: moment.nullable(),
          hours_utc: z.tuple([z.string(), z.string()]).nullable(),
          weekend_utc_offset: z.number().nullable(),
          rates,
          tiers: z.array(z.looseObject({ over: z.int(), rates })),
          factors: z.record(z.string(), z.string()),
        }),
      ),
    }),
  ),
});
export const unpriced = z.looseObject({ channel: z.string(), model: z.string(), requests: z.int() });
export const priceChanges = z.looseObject({
  current: z.string(),
  next: z.string(),
  source: z.string(),
  source_sha256: z.string(),
  models: z.int(),
  changes: z.array(
    z.looseObject({
      provider: z.string(),
      model: z.string(),
      requests: z.int(),
      what: z.string(),
      was: z.string().nullable(),
      now: z.string().nullable(),
    }),
  ),
});

const query = { timezone: z.string(), since: z.string().nullable(), until: z.string().nullable() };
/** One dimension, or two with a comma. */
const report = { by: z.string(), ...query, unreadable: z.int() };
export const usage = z.looseObject({ ...report, rows: z.array(totals), total: totals });

const historyTotals = z.looseObject({
  requests: z.int(),
  usage: z.record(z.string(), z.int()),
  /** Null: nothing of it has a price. */
  official_usd: decimal.nullable(),
  /** What sessions used beyond the requests that their logs list. */
  unlisted_usd: decimal,
  only_logs_usd: decimal.optional(),
  only_ledger_usd: decimal.optional(),
  both_usd: decimal.optional(),
  cache_hit_rate: z.number().nullable(),
  unpriced: z.int(),
  unknown: z.int(),
  partial: z.int(),
});
export const usageHistory = z.looseObject({
  by: z.string(),
  ...query,
  rows: z.array(historyTotals),
  total: historyTotals,
  unpriced: z.array(z.looseObject({ because: z.string(), requests: z.int() })),
  /** Tool → what its logs do not have. */
  lacks: z.record(z.string(), z.string()),
  unread: z.array(z.string()),
  damaged: z.int(),
  too_long: z.int(),
});

const comparison = z.looseObject({
  requests: z.int(),
  compared: z.int(),
  partial: z.int(),
  official_usd: decimal,
  charge_usd: decimal,
  as_official_usd: decimal,
  as_charge_usd: decimal,
  difference_usd: decimal,
});
export const whatIf = z.looseObject({
  ...report,
  as: z.looseObject({
    model: z.string().nullable(),
    without_cache: z.boolean(),
    tier: z.string().nullable(),
  }),
  rows: z.array(comparison),
  total: comparison,
  price_sources: z.array(z.string()),
  not_compared: z.array(
    z.looseObject({ model: z.string(), because: z.string(), requests: z.int(), charge_usd: decimal }),
  ),
});

const sharedPart = z.looseObject({
  kind: z.string(),
  name: z.string(),
  server: z.string().nullable(),
  parts: z.int(),
  sent: z.int(),
  tokens: z.int(),
  last_tokens: z.int(),
  official_usd: decimal,
  charge_usd: decimal,
});
const sentResult = z.looseObject({
  name: z.string(),
  id: z.string(),
  tokens: z.int(),
  sent: z.int(),
  official_usd: decimal,
  charge_usd: decimal,
});
export const context = z.looseObject({
  session: z.string(),
  /** The reported tokens of each prompt, divided among its parts by their lengths. */
  estimated: z.literal(true),
  tokens: z.int(),
  official_usd: decimal,
  charge_usd: decimal,
  parts: z.array(sharedPart),
  never_called: z.array(z.string()),
  largest_results: z.array(sentResult),
  turns: z.array(
    z.looseObject({
      time: moment,
      id: z.string(),
      agent: z.string().nullable(),
      tokens: z.record(z.string(), z.int()),
    }),
  ),
  not_known: z.int(),
});
export const contextServers = z.looseObject({
  since: z.string().nullable(),
  until: z.string().nullable(),
  servers: z.array(
    z.looseObject({
      server: z.string(),
      tools: z.int(),
      called: z.int(),
      sessions: z.int(),
      tokens: z.int(),
      official_usd: decimal,
      charge_usd: decimal,
    }),
  ),
});

const session = totals.extend({
  session: z.string(),
  /** The tool did not name it. */
  inferred: z.boolean(),
  tool: z.string().nullable(),
  label: z.string().nullable(),
  key: z.string(),
  since: moment,
  until: moment,
  agents: z.int(),
});

const requestOf = { time: moment, id: z.string(), agent: z.string().nullable() };
export const shownSession = session.extend({
  /** By how much the windows of a plan rose while it ran, in percent: an estimate. */
  windows: z.record(z.string(), z.number()).optional(),
  /** Other sessions used the plan at the same time. */
  windows_shared: z.boolean().optional(),
  agents: z.array(
    totals.extend({
      agent: z.string().nullable(),
      parent: z.string().nullable(),
      model: z.string(),
      cache_misses: z.int(),
    }),
  ),
  misses: z.array(
    z.looseObject({ ...requestOf, missed: z.int(), usd: decimal.nullable(), because: z.string() }),
  ),
  /** Sessions that this one has started. */
  started: z.array(session),
  turns: z
    .array(
      z.looseObject({
        ...requestOf,
        model: z.string(),
        input: z.int(),
        cached: z.int(),
        output: z.int(),
        charge_usd: decimal.nullable(),
        basis: z.string(),
      }),
    )
    .optional(),
});

export const sessions = z.looseObject({
  ...query,
  sessions: z.array(session),
  /** Requests of which no session is known. With those of the sessions they are the total. */
  no_session: totals.nullable(),
  total: totals,
  unreadable: z.int(),
});

const cause = z.looseObject({
  because: z.string(),
  at: z.int().optional(),
  part: z.string().optional(),
  detail: z.string().optional(),
  from: z.string().optional(),
});
const misses = z.looseObject({
  misses: z.int(),
  missed_tokens: z.int(),
  usd: decimal,
  unpriced_tokens: z.int(),
});
const causes = z.array(z.intersection(cause, misses));
const sessionOf = { session: z.string().nullable(), channel: z.string(), model: z.string() };

export const cache = z.looseObject({
  ...query,
  requests: z.int(),
  unanalysed: z.int(),
  rows: z.array(
    misses.extend({ ...sessionOf, tool: z.string().nullable(), label: z.string().nullable(), causes }),
  ),
  causes,
  persistent: z.array(cause.extend({ ...sessionOf, help: z.string().nullable() })),
  total: misses,
  unreadable: z.int(),
});

export const verification = z.looseObject({
  ledger: z.string(),
  right: z.boolean(),
  files: z.int(),
  lines: z.int(),
  corrections: z.int(),
  findings: z.int(),
  notes: z.array(z.string()),
  problems: z.array(
    z.looseObject({
      file: z.string(),
      line: z.int(),
      id: z.string().nullable(),
      problem: z.string(),
      advice: z.string(),
    }),
  ),
});
export const anchor = z.looseObject({ lines: z.int(), hash: z.string(), anchor: z.string() });
export const shownLine = z.looseObject({
  file: z.string(),
  line_number: z.int(),
  line: lineSchema,
  corrections: z.array(correctionSchema),
});
export const repricing = z.looseObject({
  dry_run: z.boolean(),
  corrections: z.int(),
  models: z.array(
    z.looseObject({
      model: z.string(),
      requests: z.int(),
      unpriced: z.int(),
      was_usd: decimal,
      now_usd: decimal,
    }),
  ),
});

export const seenRequest = z.looseObject({
  id: z.string(),
  time: moment,
  key: z.string().nullable(),
  group: z.string().nullable(),
  model: z.string().nullable(),
  channel: z.string().nullable(),
  client: clientSchema.nullable(),
  endpoint: z.string(),
  status: z.int(),
  outcome: z.string(),
  first_byte_ms: z.number().nullable(),
  duration_ms: z.number(),
  usage: z.record(z.string(), z.number()).nullable(),
  charge_usd: decimal.nullable(),
  problem: z.string().nullable(),
});

export const recordings = z.array(
  z.looseObject({
    name: z.string(),
    folder: z.string(),
    exchanges: z.int(),
    bytes: z.int(),
    last_used: moment,
  }),
);
