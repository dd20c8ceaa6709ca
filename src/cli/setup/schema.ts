// The action of `gateway schema`. Scripts rely on these documents: fields may be added, but never removed, so every
// object is open.

import { z } from "zod";
import { correctionSchema, lineSchema } from "../../billing/ledger/line.ts";
import { describeConfig } from "../../config/json-schema.ts";
import type { LimitName } from "../../config/limit-names.ts";
import { PLATFORMS } from "../../config/schema.ts";
import { channelViewSchema } from "../../gateway/channels/view.ts";
import { printLines } from "../terminal/terminal.ts";

const platform = z.enum(PLATFORMS);
const moment = z.string().meta({ format: "date-time" });
const decimal = z.string().regex(/^-?\d+(\.\d+)?$/);
const limits = z.looseObject({
  usd_per_day: decimal.optional(),
  usd_per_month: decimal.optional(),
  usd_total: decimal.optional(),
  usd_per_session: decimal.optional(),
  requests_per_minute: z.int().optional(),
  requests_per_minute_per_session: z.int().optional(),
  concurrent_requests: z.int().optional(),
  same_call: z.int().optional(),
  agents: z.int().optional(),
  strict: z.boolean().optional(),
  unpriced: z.literal("allow").optional(),
} satisfies Record<LimitName, z.ZodType>);

const key = z.looseObject({
  name: z.string(),
  group: z.string(),
  platform,
  disabled: z.boolean(),
  created: moment.nullable(),
  expires: moment.nullable(),
  last_used: moment.nullable(),
  spent_today_usd: decimal,
  spent_total_usd: decimal,
  limits,
  limits_used: z.array(
    z.looseObject({
      limit: z.string(),
      usd: decimal,
      spent_usd: decimal,
      estimated_usd: decimal.optional(),
      resets: moment.nullable(),
    }),
  ),
});

const group = z.looseObject({
  name: z.string(),
  platform,
  multiplier: decimal,
  description: z.string(),
  exclusive: z.boolean(),
  selectable: z.boolean(),
  plans: z.array(z.string()),
  channels: z.array(z.string()),
  limits,
});

const plan = z.looseObject({
  name: z.string(),
  groups: z.array(z.string()),
  active: z.boolean(),
  until: moment.nullable(),
  in_force: z.boolean(),
});

const model = z.looseObject({
  id: z.string(),
  group: z.string(),
  platform,
  channels: z.array(z.string()),
  /** USD per million tokens, or per thousand calls, by kind. */
  price: z.record(z.string(), z.unknown()).nullable(),
});

const totals = z.looseObject({
  requests: z.int(),
  usage: z.record(z.string(), z.int()),
  official_usd: decimal,
  charge_usd: decimal,
  cache_hit_rate: z.number().nullable(),
  unpriced: z.int(),
  unknown: z.int(),
  partial: z.int(),
});

const usage = z.looseObject({
  /** One dimension, or two with a comma. */
  by: z.string(),
  timezone: z.string(),
  since: z.string().nullable(),
  until: z.string().nullable(),
  rows: z.array(totals),
  total: totals,
  unreadable: z.int(),
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

const sessions = z.looseObject({
  timezone: z.string(),
  since: z.string().nullable(),
  until: z.string().nullable(),
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

const cache = z.looseObject({
  timezone: z.string(),
  since: z.string().nullable(),
  until: z.string().nullable(),
  requests: z.int(),
  rows: z.array(
    misses.extend({ ...sessionOf, tool: z.string().nullable(), label: z.string().nullable(), causes }),
  ),
  causes,
  persistent: z.array(cause.extend({ ...sessionOf, help: z.string().nullable() })),
  total: misses,
  unreadable: z.int(),
});

const env = z.looseObject({
  tool: z.string(),
  key: z.string().nullable(),
  group: z.string().nullable(),
  platform,
  base_url: z.url(),
  env: z.record(z.string(), z.string()),
  args: z.array(z.string()),
  file: z.looseObject({ path: z.string(), content: z.looseObject({}) }).nullable(),
});

const doctor = z.looseObject({
  ok: z.boolean(),
  checks: z.array(
    z.looseObject({
      check: z.string(),
      state: z.enum(["ok", "note", "wrong"]),
      detail: z.string(),
      mend: z.string().nullable(),
    }),
  ),
});

const OUTPUTS = {
  ledger: z.union([lineSchema, correctionSchema]),
  keys: z.array(key),
  groups: z.array(group),
  plans: z.array(plan),
  channels: z.array(channelViewSchema.unwrap().loose()),
  models: z.array(model),
  usage,
  sessions,
  cache,
  env,
  doctor,
} as const;

export type DocumentName = "config" | keyof typeof OUTPUTS;

export function printSchema(document: DocumentName): void {
  const schema =
    document === "config" ? describeConfig() : z.toJSONSchema(OUTPUTS[document], { io: "input" });
  printLines(JSON.stringify(schema, null, 2).split("\n"));
}
