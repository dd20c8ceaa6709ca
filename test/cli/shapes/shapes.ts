// What each command prints with --json. Scripts rely on these fields: more may come, and none may go, so every object is
// open.

import { z } from "zod";
import { correctionSchema, lineSchema } from "../../../src/billing/ledger/line.ts";
import { COUNT_LIMITS, USD_LIMITS } from "../../../src/config/limit-names.ts";
import { CHANNEL_WORDS, PLATFORMS } from "../../../src/config/schema.ts";
import { channelViewSchema } from "../../../src/gateway/channels/view.ts";
import { gatewayStateSchema } from "../../../src/gateway/control/state.ts";
import { exchangeSchema } from "../../../src/recording/exchange.ts";
import {
  anchor,
  cache,
  context,
  contextServers,
  decimal,
  moment,
  priceChanges,
  prices,
  recordings,
  repricing,
  seenRequest,
  sessions,
  shownLine,
  shownSession,
  unpriced,
  usage,
  usageHistory,
  verification,
  whatIf,
} from "./reports.ts";

const platform = z.enum(PLATFORMS);
const channelPlatform = z.enum(CHANNEL_WORDS);
const limits = z.looseObject({
  ...Object.fromEntries(USD_LIMITS.map((name) => [name, decimal.optional()])),
  ...Object.fromEntries(COUNT_LIMITS.map((name) => [name, z.int().optional()])),
  strict: z.boolean().optional(),
  unpriced: z.literal("allow").optional(),
});

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

const grant = { name: z.string(), group: z.string(), platform, secret: z.string() };
const newKey = z.looseObject({ ...grant, multiplier: decimal, created: moment, expires: moment.optional() });
const rotatedKey = z.looseObject({
  ...grant,
  multiplier: decimal,
  rotated: moment,
  expires: moment.optional(),
});

const group = z.looseObject({
  name: z.string(),
  platform,
  multiplier: decimal,
  description: z.string(),
  exclusive: z.boolean(),
  convert: z.boolean(),
  selectable: z.boolean(),
  plans: z.array(z.string()),
  channels: z.array(z.string()),
  default_model: z.string().nullable(),
  limits,
});

const plan = z.looseObject({
  name: z.string(),
  groups: z.array(z.string()),
  active: z.boolean(),
  until: moment.nullable(),
  in_force: z.boolean(),
});

const newChannel = z.looseObject({
  name: z.string(),
  platform: channelPlatform,
  base_url: z.url(),
  groups: z.array(z.string()),
});

const model = z.looseObject({
  id: z.string(),
  group: z.string(),
  platform,
  channels: z.array(z.string()),
  /** Those that get the requests converted. */
  converted: z.array(z.string()),
  /** USD per million tokens, or per thousand calls, by kind. */
  price: z.record(z.string(), z.unknown()).nullable(),
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
  /** What the user of an app enters. */
  settings: z.record(z.string(), z.union([z.string(), z.number(), z.boolean()])).optional(),
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

const tool = z.looseObject({
  name: z.string(),
  title: z.string(),
  platforms: z.array(platform),
  program: z.string().nullable(),
  path: z.string().nullable(),
  install: z.string().nullable(),
});
const init = z.looseObject({ config: z.string(), keys: z.array(z.looseObject(grant)) });
const imported = z.looseObject({
  config: z.string(),
  channels: z.array(z.string()),
  groups: z.array(z.string()),
  keys: z.array(z.string()),
  no_counterpart: z.array(z.string()),
});
const service = z.looseObject({
  installed: z.boolean(),
  enabled: z.boolean(),
  running: z.boolean(),
  path: z.string(),
});

const credential = z.looseObject({
  name: z.string(),
  channels: z.array(z.string()),
  stored: z.boolean().nullable(),
});

export const SHAPES = {
  ledger: z.union([lineSchema, correctionSchema]),
  keys: z.array(key),
  "keys-add": newKey,
  "keys-rotate": rotatedKey,
  "keys-show": key.extend({ multiplier: decimal }),
  groups: z.array(group),
  plans: z.array(plan),
  channels: z.array(channelViewSchema.unwrap().loose()),
  channel: channelViewSchema.unwrap().loose(),
  "channels-add": newChannel,
  models: z.array(model),
  "prices-show": prices,
  "prices-check": z.array(unpriced),
  "prices-diff": priceChanges,
  usage,
  "usage-as": whatIf,
  "usage-history": usageHistory,
  sessions,
  "sessions-show": shownSession,
  cache,
  context,
  "context-servers": contextServers,
  recordings,
  "recordings-show": z.array(exchangeSchema.unwrap().loose()),
  "ledger-verify": verification,
  "ledger-accept": z.object({ accepted: z.array(z.string()) }),
  "ledger-anchor": anchor,
  "ledger-show": shownLine,
  "ledger-reprice": repricing,
  top: gatewayStateSchema
    .unwrap()
    .extend({ recent: z.array(seenRequest) })
    .loose(),
  env,
  "run-list": z.array(tool),
  init,
  import: imported,
  doctor,
  "service-status": service,
  credentials: z.array(credential),
} as const satisfies Readonly<Record<string, z.ZodType>>;
