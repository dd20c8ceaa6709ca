// The document that a running gateway shows to its user. It contains no secret.

import { z } from "zod";
import { clientSchema } from "../../billing/ledger/line.ts";
import type { Amounts } from "../../billing/ledger/shares.ts";
import { formatUsd } from "../../lib/money.ts";
import { VERSION } from "../../lib/version.ts";
import { type ChannelView, channelViewSchema } from "../channels/view.ts";
import { countConnections } from "../channels/warm.ts";
import type { Gateway } from "../gateway.ts";
import type { RequestRecord } from "../observe/observer.ts";
import type { ApiParts } from "./row.ts";

const count = z.number();

const recordSchema: z.ZodType<RequestRecord> = z.lazy(() =>
  z.looseObject({
    id: z.string(),
    time: count,
    key: z.string().nullable(),
    group: z.string().nullable(),
    model: z.string().nullable(),
    channel: z.string().nullable(),
    // A gateway of version 0.1 does not say it.
    client: clientSchema.nullable().default(null),
    endpoint: z.string(),
    status: count,
    outcome: z.string(),
    firstByteMs: count.nullable(),
    durationMs: count,
    usage: z.record(z.string(), count).nullable(),
    chargeUsd: z.string().nullable(),
    planUsd: z.string().optional(),
    problem: z.string().nullable(),
  }),
);

export const gatewayStateSchema = z.lazy(() =>
  z.object({
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
        client: clientSchema.default({}),
        model: z.string().nullable(),
        channel: z.string(),
        since: count,
        tokens: count,
      }),
    ),
    /** Oldest first. */
    recent: z.array(recordSchema),
    /** Today, by UTC. */
    spend: z.object({
      today_usd: z.string(),
      by_key: z.record(z.string(), z.string()),
      /** What a plan paid, by key, by official prices: no part of the others. */
      by_plan: z.record(z.string(), z.string()).optional(),
    }),
    /** WebSockets of clients that are open now. */
    websockets: count.optional(),
    /** What is recorded now; `key`: null for a run. */
    recordings: z.array(z.object({ name: z.string(), key: z.string().nullable() })).optional(),
    totals: z.object({ requests: count, failed: count, refused: count }),
  }),
);
export type GatewayState = z.infer<typeof gatewayStateSchema>;

export function buildState({ gateway, activity, port, configPath }: ApiParts): GatewayState {
  const { catalog, ledger } = gateway;
  return {
    version: VERSION,
    pid: process.pid,
    since: new Date(activity.since).toISOString(),
    address: { host: catalog.listen.host, port: port() },
    config: configPath,
    ledger: { path: catalog.ledger.path, problem: ledger.problem },
    channels: viewChannels(gateway),
    streams: activity.open().map((stream) => ({ ...stream, tokens: stream.tokens() })),
    recent: [...activity.recent()],
    spend: readSpend(gateway),
    websockets: gateway.sockets.open,
    recordings: [...(gateway.recorder?.active ?? [])],
    totals: activity.totals(),
  };
}

/** With its connections, and with what is left. */
export function viewChannels(gateway: Gateway): ChannelView[] {
  const { catalog, channels, allowances, now } = gateway;
  return allowances.addTo(countConnections(channels.view(catalog, now()), gateway), catalog);
}

function readSpend({ catalog, ledger }: Gateway): GatewayState["spend"] {
  const spentBy = (name: string): Amounts => ledger.sums.spentOf({ kind: "key", name }, "day");
  const keys = [...catalog.keys.keys()].map((name) => [name, formatUsd(spentBy(name).charged)] as const);
  // Limits count it in addition to the charge.
  const plans = [...catalog.keys.values()]
    .filter(({ group }) => group.usesLogin)
    .map(({ name }) => [name, formatUsd(spentBy(name).estimated)] as const);
  return {
    today_usd: formatUsd(ledger.sums.spentTogether("day")),
    by_key: Object.fromEntries(keys),
    ...(plans.length > 0 && { by_plan: Object.fromEntries(plans) }),
  };
}
