// What needs attention, what was spent, on what, and why.

import { useEffect } from "preact/hooks";
import { FAILED, type Measure, MEASURES, OTHERS, type OverviewReply, type Stack, STACKS } from "../../api.ts";
import { Empty, Failure, Options } from "../parts/basic.tsx";
import { Chart } from "../parts/chart.tsx";
import { saveCsv } from "../parts/csv.ts";
import {
  formatChange,
  formatCount,
  formatSum,
  formatUsd,
  MEASURE_TITLES,
  namePeriod,
} from "../parts/format.ts";
import { ScopeBar } from "../parts/scope-bar.tsx";
import { Sparkline } from "../parts/sparkline.tsx";
import { go, hrefOf, type Route } from "../state/route.ts";
import { askScoped, hrefScoped, narrow, readScope, type ViewScope } from "../state/scope.ts";
import { spaceOut, useData, useFresh } from "../state/use.ts";
import { Gaps, Limits, Misses, Tokens, Work } from "./overview-cards.tsx";
import { StatusStrip } from "./status.tsx";

const REFRESH_MS = 3000;
/** While the thread still reads older lines. */
const READING_MS = 150;

export function OverviewView({ route }: { readonly route: Route }) {
  const scope = readScope(route);
  const by = route.query.get("by") ?? "model";
  const show = route.query.get("show") ?? "cost";
  const skip = route.query.get("skip") ?? "0";
  const { data, error, isCounting, load, tookMs } = useData<OverviewReply>(
    `overview?${askScoped(scope, { by, show, skip })}`,
  );
  useFresh(spaceOut(REFRESH_MS, tookMs), load);
  const isReading = data !== null && data.read < 1;
  useEffect(() => {
    if (!isReading) return undefined;
    const timer = setTimeout(load, READING_MS);
    return () => clearTimeout(timer);
  }, [data, isReading, load]);
  const change = (changed: { readonly by?: Stack; readonly show?: Measure }): void =>
    go(hrefScoped([], scope, { by, show, ...changed }), "replace");
  return (
    <>
      {data !== null && <StatusStrip data={data} />}
      <ScopeBar path={[]} scope={scope} more={{ by, show }} asOf={data?.as_of} isCounting={isCounting} />
      {error !== null && <Failure text={error} retry={load} />}
      {data === null && error === null && <p class="loading">Reading the ledger …</p>}
      {isReading && (
        <p class="reading" role="status">
          Reading the ledger: {Math.floor(data.read * 100)} %. The newest requests come last.
        </p>
      )}
      {data !== null && (
        <>
          <Story data={data} scope={scope} />
          <Spending data={data} scope={scope} change={change} />
          <div class="grid">
            <Limits limits={data.limits} />
            <Gaps data={data} scope={scope} />
            <Misses scope={scope} asOf={data.as_of} />
            <Tokens total={data.total} scope={scope} />
            <Work work={data.work} scope={scope} />
          </div>
        </>
      )}
    </>
  );
}

function Story({ data, scope }: { readonly data: OverviewReply; readonly scope: ViewScope }) {
  const { sums, before, trend, month, total } = data;
  const charged = sums.charge_usd;
  const plan = total.paid_by_plan_usd;
  const title = namePeriod(scope.period);
  return (
    <div class="stats">
      <Stat
        title={title}
        value={formatSum(charged)}
        exact={`$${charged}`}
        note={[
          plan === undefined ? null : `a plan paid ${formatSum(plan)} more`,
          before === null ? null : compare(charged, before.charge_usd, formatSum(before.charge_usd)),
        ]
          .filter((each) => each !== null)
          .join(" · ")}
        {...(plan !== undefined && {
          hint: "What a plan paid is at official prices, and is not in the amount.",
        })}
        trend={trend.charge.map(Number)}
        href={hrefScoped(["sessions"], scope, { order: "charge" })}
      />
      <Stat
        title="Requests"
        value={formatCount(sums.requests)}
        note={[
          before === null ? null : formatChange(sums.requests, before.requests),
          sums.failed === 0 ? "none failed" : `${formatCount(sums.failed)} failed`,
        ]
          .filter((each) => each !== null)
          .join(" · ")}
        trend={trend.requests}
        href={hrefScoped(["requests"], scope)}
      />
      <Saved data={data} />
      <Stat
        title="This month"
        value={formatSum(month.usd)}
        exact={`$${month.usd}`}
        note={
          month.projection === null
            ? `${formatSum(data.today_usd)} today`
            : `about ${formatSum(month.projection.usd)} at its end, ${roundUsd(month.projection.low_usd)} to ${roundUsd(month.projection.high_usd)}`
        }
        hint="The projection goes on as the last four weeks did. Eight of ten such months end within this range."
        trend={[]}
        href={hrefScoped([], { ...scope, period: "month" })}
      />
    </div>
  );
}

function roundUsd(amount: string): string {
  return Number(amount) >= 10 ? formatUsd(amount, 0).replace(/\..*/, "") : formatUsd(amount, 2);
}

function compare(now: string, before: string, text: string): string {
  const change = formatChange(now, before);
  return change === null ? `before: ${text}` : `${change}, before: ${text}`;
}

/** What the cache saved, and what it could have saved. */
function Saved({
  data: { saved_usd: saved, missed_usd: missed, total, trend },
}: {
  readonly data: OverviewReply;
}) {
  const isLoss = saved.startsWith("-");
  const share =
    Number(total.charge_usd) === 0 ? 0 : Math.round((100 * Number(missed)) / Number(total.charge_usd));
  return (
    <Stat
      title={isLoss ? "The cache cost more than it saved" : "The cache saved"}
      value={formatSum(isLoss ? saved.slice(1) : saved)}
      exact={`$${saved}`}
      note={
        Number(missed) === 0
          ? "and missed nothing"
          : `and missed ${formatSum(missed)}, ${share} % of the cost`
      }
      hint="Beside the same requests without a cache, at their own prices."
      trend={trend.saved.map(Number)}
      href="#misses"
    />
  );
}

function Stat({
  title,
  value,
  exact,
  note,
  hint,
  trend,
  href,
}: {
  readonly title: string;
  readonly value: string;
  readonly exact?: string;
  readonly note: string | null;
  readonly hint?: string;
  readonly trend: readonly number[];
  readonly href: string;
}) {
  return (
    <a class="stat" href={href} title={hint}>
      <span class="stat-title">{title}</span>
      <span class="stat-value" title={exact}>
        {value}
      </span>
      <span class="stat-note">{note}</span>
      <Sparkline values={trend} />
    </a>
  );
}

interface ChartCard {
  readonly data: OverviewReply;
  readonly scope: ViewScope;
  readonly change: (changed: { readonly by?: Stack; readonly show?: Measure }) => void;
}

function Spending({ data, scope, change }: ChartCard) {
  const { by, show, skip, series, periods } = data;
  const order = { order: show === "cost" ? "charge" : "newest" };
  const linkTo = (at: number | null, name: string | null): string | null => {
    // Small names share a series. It leads to a chart of its own.
    if (name === OTHERS)
      return at === null ? hrefScoped([], scope, { by, show, skip: `${skip + series.length - 1}` }) : null;
    if (name === null && skip > 0) return null;
    const span = at === null ? scope : { ...scope, period: periods[at] ?? scope.period };
    const of = name === null ? span : narrow(span, by, name);
    if (show !== "errors") return hrefScoped(["sessions"], of, order);
    return hrefScoped(["requests"], of.filters.outcome === undefined ? narrow(of, "outcome", FAILED) : of);
  };
  return (
    <section class="card chart">
      <header>
        <h2>{show === "latency" ? "Time to the first byte" : MEASURE_TITLES[show]}</h2>
        <label class="inline">
          by{" "}
          <select value={by} onChange={(event) => change({ by: readStack(event.currentTarget.value) })}>
            <Options values={STACKS} />
          </select>
        </label>
        {skip > 0 && (
          <p class="quiet">
            without the {skip} largest, <a href={hrefScoped([], scope, { by, show })}>show all</a>
          </p>
        )}
        <Measures shown={show} change={change} />
      </header>
      {series.length === 0 ? (
        <NoRequests isErrors={show === "errors" && data.sums.requests > 0} />
      ) : (
        <Chart bars={data} label={`${MEASURE_TITLES[show]} by ${by}`} linkTo={linkTo} />
      )}
      {show === "errors" && (
        <p class="quiet">
          What was refused, and what no channel answered, cost nothing and has no line in the ledger:{" "}
          <a href={hrefOf(["live"])}>Live</a> shows the latest.
        </p>
      )}
      <p class="quiet foot-note">
        <button type="button" class="plain" onClick={() => saveSeries(data, scope)}>
          Save as CSV
        </button>
      </p>
    </section>
  );
}

function Measures({ shown, change }: { readonly shown: Measure; readonly change: ChartCard["change"] }) {
  return (
    <div class="segments" role="group" aria-label="What the chart shows">
      {MEASURES.map((each) => (
        <button key={each} type="button" aria-pressed={shown === each} onClick={() => change({ show: each })}>
          {MEASURE_TITLES[each]}
        </button>
      ))}
    </div>
  );
}

function saveSeries({ spans, series, by, show }: OverviewReply, scope: ViewScope): void {
  saveCsv(
    `gateway-${show}-by-${by}-${scope.period}`,
    ["time", ...series.map(({ name }) => name)],
    spans.map((span, at) => [span, ...series.map(({ values }) => values[at] ?? null)]),
  );
}

function readStack(text: string): Stack {
  return STACKS.find((each) => each === text) ?? "model";
}

function NoRequests({ isErrors }: { readonly isErrors: boolean }) {
  if (isErrors) return <Empty title="No request failed in this period." />;
  return (
    <Empty title="No requests in this period.">
      <p>
        Connect a tool with <code>gateway run claude</code>, or create a key under{" "}
        <a href={hrefOf(["keys"])}>Keys</a>.
      </p>
    </Empty>
  );
}
