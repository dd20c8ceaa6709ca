// What a running gateway tells of itself on the control path. No secret is in it.

import { z } from "zod";
import { formatUsd } from "../../lib/money.ts";
import { VERSION } from "../../lib/version.ts";
import type { Activity } from "../observe/activity.ts";
import type { Gateway } from "../gateway.ts";
import type { RequestRecord } from "../observe/observer.ts";

export const CHANNEL_STATES = [
  "available",
  "degraded",
  "resting",
  "unavailable",
  "disabled",
  "unknown",
] as const;

const moment = z.string().nullable();
const count = z.number();

export const channelViewSchema = z.object({
  name: z.string(),
  platform: z.string(),
  groups: z.array(z.string()),
  state: z.enum(CHANNEL_STATES),
  /** ISO times. */
  since: moment,
  reason: z.string().nullable(),
  /** When a resting or unavailable channel is tried again. */
  until: moment,
  /** Of the last minutes, from 0 to 1; null without a request. */
  success_rate: z.number().nullable(),
  /** To the first byte: half of the recent answers came sooner; 95 of 100 did. */
  latency_ms: z.number().nullable(),
  latency_p95_ms: z.number().nullable(),
  requests_hour: count,
  errors_hour: count,
  charge_today_usd: z.string(),
  /** The last hour in steps of five minutes, oldest first. */
  hour: z.array(z.object({ requests: count, errors: count })),
});
export type ChannelView = z.infer<typeof channelViewSchema>;
export type ChannelState = ChannelView["state"];

const recordSchema: z.ZodType<RequestRecord> = z.looseObject({
  id: z.string(),
  time: count,
  key: z.string().nullable(),
  group: z.string().nullable(),
  model: z.string().nullable(),
  channel: z.string().nullable(),
  endpoint: z.string(),
  status: count,
  outcome: z.string(),
  firstByteMs: count.nullable(),
  durationMs: count,
  usage: z.record(z.string(), count).nullable(),
  chargeUsd: z.string().nullable(),
  problem: z.string().nullable(),
});

export const gatewayStateSchema = z.object({
  version: z.string(),
  pid: count,
  since: z.string(),
  address: z.object({ host: z.string(), port: count }),
  /** Null for a demo. */
  config: z.string().nullable(),
  ledger: z.object({ path: z.string(), problem: z.string().nullable() }),
  channels: z.array(channelViewSchema),
  streams: z.array(
    z.object({
      id: z.string(),
      key: z.string(),
      model: z.string().nullable(),
      channel: z.string(),
      since: count,
      tokens: count,
    }),
  ),
  /** Oldest first. */
  recent: z.array(recordSchema),
  /** Today, by UTC. */
  spend: z.object({ today_usd: z.string(), by_key: z.record(z.string(), z.string()) }),
  totals: z.object({ requests: count, failed: count, refused: count }),
});
export type GatewayState = z.infer<typeof gatewayStateSchema>;

export interface Place {
  readonly port: number;
  readonly config: string | null;
}

export function buildState(gateway: Gateway, activity: Activity, place: Place): GatewayState {
  const { catalog, ledger } = gateway;
  return {
    version: VERSION,
    pid: process.pid,
    since: new Date(activity.since).toISOString(),
    address: { host: catalog.listen.host, port: place.port },
    config: place.config,
    ledger: { path: catalog.ledger.path, problem: ledger.problem },
    channels: gateway.channels.view(catalog, gateway.now()),
    streams: activity.open().map((stream) => ({ ...stream, tokens: stream.tokens() })),
    recent: [...activity.recent()],
    spend: readSpend(gateway),
    totals: activity.totals(),
  };
}

function readSpend({ catalog, ledger }: Gateway): GatewayState["spend"] {
  const keys = [...catalog.keys.keys()].map((name) => {
    const spent = ledger.spentOf({ kind: "key", name }, "day");
    return [name, formatUsd(spent)] as const;
  });
  return { today_usd: formatUsd(ledger.spentTogether("day")), by_key: Object.fromEntries(keys) };
}
