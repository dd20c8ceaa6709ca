// What each session of an agent has spent.

import { useState } from "preact/hooks";
import type { DescribedTotals, SessionRow, SessionsReply } from "../../api.ts";
import { MAX_SESSIONS, type Order, ORDERS, SESSIONS } from "../../api.ts";
import { Charge, Empty, Failure, Name, Options, Table } from "../parts/basic.tsx";
import { saveCsv } from "../parts/csv.ts";
import {
  formatCharge,
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
  missed: "those with cache misses",
};
const REFRESH_MS = 15_000;

export function SessionsView({ route }: { readonly route: Route }) {
  const scope = readScope(route);
  const order = ORDERS.find((each) => each === route.query.get("order")) ?? "newest";
  const question = askScoped(scope, { order });
  const [more, setMore] = useState({ question, most: SESSIONS });
  const most = more.question === question ? more.most : SESSIONS;
  const { data, error, isCounting, load, tookMs } = useData<SessionsReply>(
    `sessions?${question}&most=${most}`,
  );
  useFresh(spaceOut(REFRESH_MS, tookMs), load);
  const [, session] = route.path;
  return (
    <>
      <h1 class="hidden">Sessions</h1>
      <ScopeBar
        path={["sessions"]}
        scope={scope}
        more={{ order }}
        asOf={data?.as_of}
        isCounting={isCounting}
      />
      {error !== null && <Failure text={error} retry={load} />}
      <section class="card">
        <header>
          <h2>Sessions</h2>
          <OrderField scope={scope} order={order} />
          <button type="button" disabled={data === null} onClick={() => data !== null && save(data, scope)}>
            Save as CSV
          </button>
        </header>
        {data === null ? (
          error === null && <p class="loading">Counting …</p>
        ) : (
          <Sessions
            data={data}
            scope={scope}
            order={order}
            showMore={() => setMore({ question, most: Math.min(MAX_SESSIONS, most * 5) })}
          />
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

function OrderField({ scope, order }: Pick<SessionsProps, "scope" | "order">) {
  return (
    <label class="inline">
      <select
        aria-label="Order"
        value={order}
        onChange={({ currentTarget: { value } }) =>
          go(hrefScoped(["sessions"], scope, { order: value }), "replace")
        }
      >
        <Options values={ORDERS} name={(each) => ORDER_TITLES[each]} />
      </select>
    </label>
  );
}

interface SessionsProps {
  readonly data: SessionsReply;
  readonly scope: ViewScope;
  readonly order: Order;
  readonly showMore: () => void;
}

function Sessions({ data: { sessions, isMore, total, unnamed }, scope, order, showMore }: SessionsProps) {
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
          These are the first {formatCount(sessions.length)}; the sum has all of them.{" "}
          {sessions.length < MAX_SESSIONS ? (
            <button type="button" onClick={showMore}>
              Show more
            </button>
          ) : (
            "A shorter period or a filter shows others."
          )}
        </p>
      )}
    </>
  );
}

const CSV_COLUMNS = [
  "session",
  "since",
  "until",
  "tool",
  "label",
  "key",
  "requests",
  "agents",
  "cache_hit_rate",
  "missed",
  "charge_usd",
] as const satisfies readonly (keyof SessionRow)[];

function save({ sessions }: SessionsReply, { period }: ViewScope): void {
  saveCsv(
    `gateway-sessions-${period}`,
    CSV_COLUMNS,
    sessions.map((row) => CSV_COLUMNS.map((name) => row[name])),
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
      <Charge text={formatUsd(totals.charge_usd, 4)} href={href} />
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
      <Charge
        text={formatCharge(row.charge_usd, row.paid_by_plan_usd)}
        href={href}
        title={row.paid_by_plan_usd && "Paid by a plan, not charged"}
      />
    </tr>
  );
}
