// An agent's status line, from memory only.

import type { SessionSum } from "../../billing/ledger/shares.ts";
import { type LimitUse, listLimitUses, listSessionUses } from "../../billing/limits/alerts.ts";
import { computeShare } from "../../billing/usage.ts";
import type { Key } from "../../config/catalog.ts";
import { formatUsd, subtractUsd, type Usd, ZERO_USD } from "../../lib/money.ts";
import { listAllowances } from "../channels/allowances.ts";
import { storeId } from "../intake/client.ts";
import type { Gateway } from "../gateway.ts";

export type Status = ReturnType<typeof buildStatus>;

/** `keyName`: the key whose limits are shown before the first request. */
export function buildStatus(session: string | null, keyName: string | null, gateway: Gateway) {
  const { ledger, catalog } = gateway;
  const id = session === null ? undefined : storeId(session);
  const sum = id === undefined ? null : ledger.sums.sessionOf(id);
  const key = catalog.keys.get(sum?.key ?? keyName ?? "");
  const recordings = new Set(gateway.recorder.active.map(({ name }) => name));
  return {
    session: id === undefined || sum === null ? null : describeSession(id, sum, key, gateway),
    ...(recordings.size > 0 && { recordings: [...recordings] }),
    today_usd: formatUsd(ledger.sums.spentTogether("day")),
    allowance: key?.group.channels.flatMap((channel) =>
      listAllowances(gateway.channels.of(channel), gateway.now()),
    ),
    limit: key === undefined ? null : findTightest(key, id, gateway),
  };
}

function describeSession(id: string, sum: SessionSum, key: Key | undefined, { contexts }: Gateway) {
  const context = contexts?.last(id) ?? null;
  const rises = Object.entries(sum.windows).map(([name, { rise }]) => [name, rise] as const);
  return {
    id,
    key: sum.key,
    model: sum.model,
    requests: sum.requests,
    charge_usd: formatUsd(sum.charged),
    ...(key?.group.usesLogin === true && { paid_by_plan_usd: formatUsd(sum.estimated) }),
    cache_hit_rate: computeShare(sum.cached, sum.input),
    ...(context !== null && { context }),
    ...(rises.length > 0 && { windows: Object.fromEntries(rises) }),
  };
}

function findTightest(key: Key, session: string | undefined, { ledger, now }: Gateway) {
  const uses = [
    ...listLimitUses([key], ledger.sums, now()),
    ...(session === undefined ? [] : listSessionUses(key, session, ledger.sums)),
  ];
  const [tightest] = uses.toSorted((a, b) => (leftOf(a) < leftOf(b) ? -1 : 1));
  if (tightest === undefined) return null;
  const { holder, limit, usd } = tightest;
  return { ...holder, limit, usd: formatUsd(usd), left_usd: formatUsd(leftOf(tightest)) };
}

function leftOf({ usd, spent }: LimitUse): Usd {
  return spent > usd ? ZERO_USD : subtractUsd(usd, spent);
}
