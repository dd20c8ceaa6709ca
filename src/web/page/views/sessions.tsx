// What each session has spent.

import type { SessionRow } from "../../../billing/reports/sessions.ts";
import type { Totals } from "../../../billing/reports/sums.ts";
import { type Order, ORDERS } from "../../../billing/reports/words.ts";
import type { Document } from "../../../gateway/api/reports.ts";
import { Charge, Empty, Moment, Options, Waiting } from "../parts/basic.tsx";
import { chargeOf, formatCount, formatRate, formatShort, formatSpan } from "../parts/format.ts";
import { ScopeBar } from "../parts/scope-bar.tsx";
import { type Column, ShowMore, Table, useMore } from "../parts/table.tsx";
import { go, type Route } from "../state/route.ts";
import { askScoped, hrefScoped, narrow, readScope, type ViewScope } from "../state/scope.ts";
import { spaceOut, useData, useFresh } from "../state/use.ts";
import { SessionPanel } from "./session.tsx";

const ORDER_TITLES: Readonly<Record<Order, string>> = {
  newest: "newest first",
  charge: "most expensive first",
  missed: "only with cache misses",
};
const REFRESH_MS = 15_000;

export function SessionsView({ route }: { readonly route: Route }) {
  const scope = readScope(route);
  const order = ORDERS.find((each) => each === route.query.get("order")) ?? "newest";
  const question = askScoped(scope, { order });
  const more = useMore(question);
  const loaded = useData<Document<"sessions">>(`reports/sessions?${question}&most=${more.most + 1}`);
  const { data, isCounting, load, tookMs } = loaded;
  useFresh(spaceOut(REFRESH_MS, tookMs), load);
  const [, session] = route.path;
  return (
    <>
      <ScopeBar
        path={["sessions"]}
        scope={scope}
        more={{ order }}
        asOf={data?.as_of}
        isCounting={isCounting}
      />
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
              <Options values={ORDERS} name={(each) => ORDER_TITLES[each]} />
            </select>
          </label>
        </header>
        <Waiting of={loaded} text="Counting …" />
        {data !== null && <Sessions data={data} more={more} scope={scope} order={order} />}
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

function Sessions({
  data,
  more,
  scope,
  order,
}: {
  readonly data: Document<"sessions">;
  readonly more: ReturnType<typeof useMore>;
  readonly scope: ViewScope;
  readonly order: Order;
}) {
  const { total, no_session: unnamed } = data;
  if (total.requests === 0)
    return (
      <Empty title="No request in this period.">
        <p>
          Agents such as Claude Code and Codex name their sessions: <code>gateway run claude</code> starts
          one.
        </p>
      </Empty>
    );
  const lines: Line[] = data.sessions.slice(0, more.most).map((row) => ({
    ...row,
    href: hrefScoped(["sessions", row.session], scope, { order }),
  }));
  if (unnamed !== null) {
    const href = hrefScoped(["requests"], narrow(scope, "session", ""));
    lines.push({ ...unnamed, title: "Without a session", href });
  }
  lines.push({ ...total, title: "All together", href: hrefScoped(["requests"], scope) });
  return (
    <>
      <Table
        name="Sessions"
        columns={COLUMNS}
        rows={lines}
        keyOf={({ title, href }) => title ?? href}
        hrefOf={({ href }) => href}
        isSum={({ title }) => title !== undefined}
      />
      {data.sessions.length > more.most && <ShowMore {...more} />}
    </>
  );
}

interface Line extends Totals, Partial<Omit<SessionRow, keyof Totals>> {
  readonly title?: string;
  readonly href: string;
}

const COLUMNS: readonly Column<Line>[] = [
  ["Last request", "", ({ title, until }) => title ?? <Moment time={until ?? ""} />],
  ["Tool", "name", ({ tool }) => tool],
  ["Label", "name some", ({ label }) => label],
  ["Key", "name some", ({ key }) => key],
  [
    "Lasted",
    "number some",
    ({ since, until }) => since && formatSpan(Date.parse(until ?? "") - Date.parse(since)),
  ],
  ["Requests", "number more", ({ requests }) => formatCount(requests)],
  ["Agents", "number some", ({ agents }) => agents],
  ["From cache", "number some", (row) => formatRate(row.cache_hit_rate)],
  ["Missed", "number some", ({ missed }) => (missed === 0 ? null : missed && formatShort(missed))],
  [
    "Charge",
    "number",
    ({ paid_by_plan_usd: plan, title, ...row }) => (
      <Charge usd={chargeOf(row)} plan={title === undefined ? plan : undefined} />
    ),
  ],
];
