// What a running gateway shows to its user, without secrets.

import type { Amounts } from "../../billing/ledger/shares.ts";
import { formatUsd } from "../../lib/money.ts";
import { VERSION } from "../../lib/version.ts";
import type { Gateway } from "../gateway.ts";
import type { ApiParts } from "./parts.ts";

export type GatewayState = ReturnType<typeof buildState>;

export function buildState({ gateway, activity, port, configPath, follow }: ApiParts) {
  const { catalog, ledger, channels, now } = gateway;
  return {
    version: VERSION,
    pid: process.pid,
    since: new Date(activity.since).toISOString(),
    address: { host: catalog.listen.host, port: port() },
    config: configPath,
    config_problem: follow.problem(),
    ledger: { path: catalog.ledger.path, problem: ledger.problem },
    channels: channels.view(catalog, now()),
    streams: activity.open().map((stream) => ({ ...stream, tokens: stream.tokens() })),
    /** Oldest first. */
    recent: [...activity.recent()],
    spend: readSpend(gateway),
    websockets: gateway.openSockets,
    /** For a recorded `gateway run`, `key` is null. */
    recordings: [...gateway.recorder.active],
    totals: activity.totals(),
  };
}

function readSpend({ catalog, ledger }: Gateway) {
  const spentBy = (name: string): Amounts => ledger.sums.spentOf({ kind: "key", name }, "day");
  const keys = [...catalog.keys.keys()].map((name) => [name, formatUsd(spentBy(name).charged)] as const);
  const plans = [...catalog.keys.values()]
    .filter(({ group }) => group.usesLogin)
    .map(({ name }) => [name, formatUsd(spentBy(name).estimated)] as const);
  return {
    today_usd: formatUsd(ledger.sums.spentTogether("day")),
    by_key: Object.fromEntries(keys),
    /** What a plan paid, by official prices. No other sum includes it. */
    ...(plans.length > 0 && { by_plan: Object.fromEntries(plans) }),
  };
}
