// What each session of an agent has spent.

import type { DescribedTotals, SessionRow, SessionsReply } from "../../api.ts";
import { type Order, ORDERS } from "../../api.ts";
import { Empty, Failure, Name, Table } from "../parts/basic.tsx";
import {
  formatCount,
  formatFull,
  formatMoment,
  formatRate,
  formatShort,
  formatSpan,
  formatUsd,
} from "../parts/format.ts";
import { ScopeBar } from "../parts/scope-bar.tsx";
import { go, type Route } from "../state/route.ts";
import { askScoped, hrefScoped, narrow, readScope, type ViewScope } from "../state/scope.ts";
import { spaceOut, useData, useFresh } from "../state/use.ts";
import { SessionPanel } from "./session.tsx";

const ORDER_TITLES: Readonly<Record<Order, string>> = {
  newest: "newest first",
  charge: "most expensive first",
};
const REFRESH_MS = 15_000;

export function SessionsView({ route }: { readonly route: Route }) {
  const scope = readScope(route);
  const order = ORDERS.find((each) => each === route.query.get("order")) ?? "newest";
  const { data, error, load, tookMs } = useData<SessionsReply>(`sessions?${askScoped(scope, { order })}`);
  useFresh(spaceOut(REFRESH_MS, tookMs), load);
  const [, session] = route.path;
  return (
    <>
      <h1 class="hidden">Sessions</h1>
      <ScopeBar path={["sessions"]} scope={scope} more={{ order }} />
      {error !== null && <Failure text={error} retry={load} />}
      <section class="card">
        <header>
          <h2>Sessions</h2>
          <label class="inline">
            <select
              aria-label="Order"
              value={order}
              onChange={({ currentTarget: { value } }) =>
                go(hrefScoped(["sessions"], scope, { order: value }), "replace")
              }
            >
              {ORDERS.map((each) => (
                <option key={each} value={each}>
                  {ORDER_TITLES[each]}
                </option>
              ))}
            </select>
          </label>
        </header>
        {data === null ? (
          error === null && <p class="loading">Counting …</p>
        ) : (
          <Sessions data={data} scope={scope} order={order} />
        )}
      </section>
      {session !== undefined && (
        <SessionPanel
          id={session}
          onClose={() => go(hrefScoped(["sessions"], scope, { order }), "replace")}
        />
      )}
    </>
  );
}

interface SessionsProps {
  readonly data: SessionsReply;
  readonly scope: ViewScope;
  readonly order: Order;
}

function Sessions({ data: { sessions, isMore, total, unnamed }, scope, order }: SessionsProps) {
  if (total.requests === 0)
    return (
      <Empty title="No request in this period.">
        <p>
          Agents such as Claude Code and Codex name their sessions: <code>gateway run claude</code> starts
          one.
        </p>
      </Empty>
    );
  return (
    <>
      <Table
        name="Sessions"
        columns={[
          ["Last request"],
          ["Tool"],
          ["Label", "some"],
          ["Key", "some"],
          ["Lasted", "number some"],
          ["Requests", "number more"],
          ["Agents", "number some"],
          ["From cache", "number some"],
          ["Missed", "number some"],
          ["Charge", "number"],
        ]}
      >
        {sessions.map((row) => (
          <SessionLine
            key={row.session}
            row={row}
            href={hrefScoped(["sessions", row.session], scope, { order })}
          />
        ))}
        {unnamed.requests > 0 && (
          <SumLine
            title="Without a session"
            totals={unnamed}
            href={hrefScoped(["requests"], narrow(scope, "session", ""))}
          />
        )}
        <SumLine title="All together" totals={total} href={hrefScoped(["requests"], scope)} />
      </Table>
      {isMore && (
        <p class="quiet">
          These are the first {formatCount(sessions.length)}; the sum has all of them. A shorter period or a
          filter shows others.
        </p>
      )}
    </>
  );
}

function SumLine({
  title,
  totals,
  href,
}: {
  readonly title: string;
  readonly totals: DescribedTotals;
  readonly href: string;
}) {
  return (
    <tr class="sum">
      <th scope="row">
        <a href={href}>{title}</a>
      </th>
      <td />
      <td class="some" />
      <td class="some" />
      <td class="some" />
      <td class="number more">{formatCount(totals.requests)}</td>
      <td class="some" />
      <td class="number some">{formatRate(totals.cache_hit_rate)}</td>
      <td class="some" />
      <td class="number">{formatUsd(totals.charge_usd, 4)}</td>
    </tr>
  );
}

function SessionLine({ row, href }: { readonly row: SessionRow; readonly href: string }) {
  const { since, until, tool, label, key, requests, agents, missed } = row;
  const end = Date.parse(until);
  return (
    <tr>
      <td>
        <a href={href}>
          <time title={formatFull(end)}>{formatMoment(end)}</time>
        </a>
      </td>
      <Name text={tool} />
      <Name text={label} more="some" />
      <Name text={key} more="some" />
      <td class="number some">{formatSpan(end - Date.parse(since))}</td>
      <td class="number more">{formatCount(requests)}</td>
      <td class="number some">{formatCount(agents)}</td>
      <td class="number some">{formatRate(row.cache_hit_rate)}</td>
      <td class="number some">{missed === 0 ? "–" : formatShort(missed)}</td>
      <td class="number">
        {row.paid_by_plan_usd === undefined ? (
          formatUsd(row.charge_usd, 4)
        ) : (
          <span title="Paid by a plan, not charged">({formatUsd(row.paid_by_plan_usd, 4)})</span>
        )}
      </td>
    </tr>
  );
}
