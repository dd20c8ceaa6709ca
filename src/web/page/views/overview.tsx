// What needs attention, what was spent, on what, and why.

import type { ComponentChildren } from "preact";
import {
  FAILED,
  type Measure,
  MEASURES,
  OTHERS,
  type Stack,
  STACKS,
} from "../../../billing/reports/words.ts";
import type { OverviewReply } from "../../../gateway/api/documents.ts";
import { Amount, Empty, Options, Waiting } from "../parts/basic.tsx";
import { Chart } from "../parts/chart.tsx";
import {
  formatChange,
  formatCount,
  formatDollars,
  formatExact,
  formatLastDay,
  listMonths,
  MEASURE_TITLES,
  namePeriod,
} from "../parts/format.ts";
import { SaveReport } from "../parts/save-report.tsx";
import { ScopeBar } from "../parts/scope-bar.tsx";
import { go, hrefOf, type Route } from "../state/route.ts";
import { askScoped, hrefScoped, narrow, readScope, type ViewScope } from "../state/scope.ts";
import { spaceOut, useData, useFresh, useRetry } from "../state/use.ts";
import { Limits, Misses, Tokens } from "./overview-cards.tsx";
import { StatusStrip } from "./matters.tsx";

const REFRESH_MS = 3000;
/** How often to ask again while the gateway reads older lines. */
const READING_MS = 150;

export function OverviewView({ route }: { readonly route: Route }) {
  const scope = readScope(route);
  const by = STACKS.find((each) => each === route.query.get("by")) ?? "model";
  const show = MEASURES.find((each) => each === route.query.get("show")) ?? "cost";
  const loaded = useData<OverviewReply>(`reports/overview?${askScoped(scope, { by, show })}`);
  const { data, isCounting, load, tookMs } = loaded;
  useFresh(spaceOut(REFRESH_MS, tookMs), load);
  const isReading = data !== null && data.read < 1;
  useRetry(isReading, READING_MS, loaded);
  return (
    <>
      {data !== null && <StatusStrip data={data} />}
      <ScopeBar path={[]} scope={scope} more={{ by, show }} asOf={data?.as_of} isCounting={isCounting}>
        <SaveReport scope={scope} />
      </ScopeBar>
      <Waiting of={loaded} text="Reading the ledger …" />
      {isReading && (
        <p class="reading" role="status">
          Reading the ledger: {Math.floor(data.read * 100)} %. The newest requests come last.
        </p>
      )}
      {data !== null && (
        <>
          <Story data={data} scope={scope} />
          <Spending data={data} scope={scope} />
          <div class="grid">
            <Limits limits={data.limits} />
            <Misses scope={scope} asOf={data.as_of} />
            <Tokens total={data.total} />
          </div>
        </>
      )}
    </>
  );
}

function Story({ data, scope }: { readonly data: OverviewReply; readonly scope: ViewScope }) {
  const { sums, before, total, month_usd: month, missed_usd: missed, projection } = data;
  const charged = sums.charge_usd;
  const plan = total.paid_by_plan_usd;
  const share = Number(charged) === 0 ? 0 : Math.round((100 * Number(missed)) / Number(charged));
  const change = before && formatChange(charged, before.charge_usd);
  const more = before && formatChange(sums.requests, before.requests);
  return (
    <div class="stats">
      <Stat
        title={namePeriod(scope.period)}
        value={<Amount usd={charged} />}
        href={hrefScoped(["sessions"], scope, { order: "charge" })}
      >
        {plan !== undefined && (
          <span>
            a plan paid <Amount usd={plan} /> more
          </span>
        )}
        {before !== null && (
          <span>
            vs <Amount usd={before.charge_usd} />
          </span>
        )}
        {change !== null && <span>{change}</span>}
      </Stat>
      <Stat title="Requests" value={formatCount(sums.requests)} href={hrefScoped(["requests"], scope)}>
        {more !== null && <span>{more}</span>}
        <span>{sums.failed === 0 ? "none failed" : `${formatCount(sums.failed)} failed`}</span>
      </Stat>
      <Stat title="Missed by the cache" value={<Amount usd={missed} />} href="#misses">
        {Number(missed) !== 0 && <span>{share} % of the cost</span>}
      </Stat>
      <Stat
        title="This month"
        value={<Amount usd={month} />}
        href={hrefScoped([], { ...scope, period: "month" })}
      >
        {projection === null ? (
          <span>
            <Amount usd={data.today_usd} /> today
          </span>
        ) : (
          <Estimate {...projection} />
        )}
      </Stat>
    </div>
  );
}

function Estimate({ usd, low_usd, high_usd }: NonNullable<OverviewReply["projection"]>) {
  const [month = ""] = listMonths(1);
  const [low, high] = [formatDollars(low_usd), formatDollars(high_usd)];
  return (
    <span title={`${formatExact(usd)}, from ${formatExact(low_usd)} to ${formatExact(high_usd)}`}>
      ≈ {formatDollars(usd)} by {formatLastDay(month)}{" "}
      {low !== high && (
        <span class="number">
          ({low}–{high.slice(1)})
        </span>
      )}
    </span>
  );
}

function Stat({
  title,
  value,
  href,
  children,
}: {
  readonly title: string;
  readonly value: ComponentChildren;
  readonly href: string;
  readonly children: ComponentChildren;
}) {
  return (
    <a class="stat" href={href}>
      <span class="stat-title">{title}</span>
      <span class="stat-value">{value}</span>
      <span class="stat-note">{children}</span>
    </a>
  );
}

function Spending({ data, scope }: { readonly data: OverviewReply; readonly scope: ViewScope }) {
  const { by, show, series, sums } = data;
  const noneFailed = show === "errors" && sums.requests > 0;
  const change = (changed: { readonly by?: string; readonly show?: Measure }): void =>
    go(hrefScoped([], scope, { by, show, ...changed }), "replace");
  const linkTo = (name: string | null): string | null => {
    if (name === OTHERS) return null;
    const of = name === null ? scope : narrow(scope, by, name);
    const isAnyOutcome = show === "errors" && of.filters.outcome === undefined;
    return hrefScoped(["requests"], isAnyOutcome ? narrow(of, "outcome", FAILED) : of);
  };
  return (
    <section class="card chart">
      <header>
        <h2>{MEASURE_TITLES[show]}</h2>
        <label class="inline">
          by{" "}
          <select value={by} onChange={(event) => change({ by: event.currentTarget.value })}>
            <Options<Stack> values={STACKS} />
          </select>
        </label>
        <div class="segments" role="group" aria-label="Measure of the chart">
          {MEASURES.map((each) => (
            <button
              key={each}
              type="button"
              aria-pressed={show === each}
              onClick={() => change({ show: each })}
            >
              {MEASURE_TITLES[each]}
            </button>
          ))}
        </div>
      </header>
      {series.length === 0 ? (
        <Empty title={`No ${noneFailed ? "request failed" : "requests"} in this period.`}>
          {!noneFailed && (
            <p>
              Connect a tool with <code>gateway run claude</code>, or create a key under{" "}
              <a href={hrefOf(["keys"])}>Keys</a>.
            </p>
          )}
        </Empty>
      ) : (
        <Chart bars={data} label={`${MEASURE_TITLES[show]} by ${by}`} linkTo={linkTo} />
      )}
    </section>
  );
}
