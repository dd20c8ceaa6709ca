// What was spent, against which limits, on what.

import { useEffect } from "preact/hooks";
import {
  type LimitRow,
  type OverviewReply,
  type PeriodName,
  PERIODS,
  type Stack,
  STACKS,
  type DescribedTotals,
} from "../../api.ts";
import { Bar, Card, Empty, Failure } from "../parts/basic.tsx";
import { StackedBars } from "../parts/chart.tsx";
import {
  formatCount,
  formatRate,
  formatShort,
  formatSpan,
  formatSum,
  formatUsd,
  nameKind,
  nameLimit,
  PERIOD_TITLES,
} from "../parts/format.ts";
import { go, hrefOf, type Route } from "../state/route.ts";
import { spaceOut, useData, useFresh, useLive, useNow } from "../state/use.ts";

const REFRESH_MS = 3000;
/** While the thread still reads older lines. */
const READING_MS = 150;

export function OverviewView({ route }: { readonly route: Route }) {
  const period = PERIODS.find((each) => each === route.query.get("period")) ?? "7d";
  const by = STACKS.find((each) => each === route.query.get("by")) ?? "model";
  const unknown = [...explainUnknown(route, "period", PERIODS), ...explainUnknown(route, "by", STACKS)];
  const { data, error, load, tookMs } = useData<OverviewReply>(`overview?period=${period}&by=${by}`);
  useFresh(spaceOut(REFRESH_MS, tookMs), load);
  const isReading = data !== null && data.read < 1;
  useEffect(() => {
    if (!isReading) return undefined;
    const timer = setTimeout(load, READING_MS);
    return () => clearTimeout(timer);
  }, [data, isReading, load]);
  const show = (changed: { readonly period?: PeriodName; readonly by?: Stack }): void =>
    go(hrefOf([], { period, by, ...changed }), "replace");
  if (data === null)
    return error === null ? (
      <p class="loading">Reading the ledger …</p>
    ) : (
      <Failure text={error} retry={load} />
    );
  return (
    <>
      <h1 class="hidden">Overview</h1>
      {error !== null && <Failure text={error} retry={load} />}
      {unknown.map((text) => (
        <Failure key={text} text={text} close={() => show({})} />
      ))}
      <Spent data={data} show={(each) => show({ period: each })} />
      {isReading && (
        <p class="reading" role="status">
          Reading the ledger: {Math.floor(data.read * 100)} %. The newest requests are already included.
        </p>
      )}
      <div class="grid">
        <Spending data={data} show={(each) => show({ by: each })} />
        <Limits limits={data.limits} />
        <Tokens total={data.total} />
        <Gaps data={data} />
      </div>
    </>
  );
}

function Spending({ data, show }: { readonly data: OverviewReply; readonly show: (by: Stack) => void }) {
  return (
    <section class="card wide">
      <header>
        <h2>Spending, {PERIOD_TITLES[data.period].toLowerCase()}</h2>
        <label class="inline">
          by{" "}
          <select value={data.by} onChange={(event) => show(readStack(event.currentTarget.value))}>
            {STACKS.map((each) => (
              <option key={each} value={each}>
                {each}
              </option>
            ))}
          </select>
        </label>
      </header>
      {data.series.length === 0 ? (
        <NoRequests />
      ) : (
        <StackedBars bars={data} label={`Spending by ${data.by}`} />
      )}
    </section>
  );
}

/** An address that says something else than what is shown. */
function explainUnknown({ query }: Route, name: string, known: readonly string[]): string[] {
  const given = query.get(name);
  if (given === null || known.includes(given)) return [];
  return [
    `The address asks for the ${name === "by" ? "grouping" : name} “${given}”, which there is not. There are: ${known.join(", ")}.`,
  ];
}

function readStack(text: string): Stack {
  return STACKS.find((each) => each === text) ?? "model";
}

function Spent({
  data,
  show,
}: {
  readonly data: OverviewReply;
  readonly show: (period: PeriodName) => void;
}) {
  const { spend } = useLive();
  // The header has today's amount too, and gets it at once.
  const spent = { ...data.spent, ...(spend !== null && { today: spend.today_usd }) };
  return (
    <div class="stats" role="group" aria-label="Period">
      {PERIODS.map((period) => (
        <button
          key={period}
          type="button"
          class="stat"
          aria-pressed={data.period === period}
          onClick={() => show(period)}
        >
          <span class="stat-title">{PERIOD_TITLES[period]}</span>
          <span class="stat-value" title={`$${spent[period]}`}>
            {formatSum(spent[period])}
          </span>
        </button>
      ))}
    </div>
  );
}

function NoRequests() {
  return (
    <Empty title="No requests in this period.">
      <p>
        Connect a tool with <code>gateway run claude</code>, or create a key under{" "}
        <a href={hrefOf(["keys"])}>Keys</a>.
      </p>
    </Empty>
  );
}

function Limits({ limits }: { readonly limits: readonly LimitRow[] }) {
  const now = useNow(30_000);
  return (
    <Card title="Limits">
      {limits.length === 0 ? (
        <Empty title="No key and no group has a limit in USD.">
          <p>
            Set one under <a href={hrefOf(["keys"])}>Keys</a>.
          </p>
        </Empty>
      ) : (
        <ul class="limits">
          {limits.toSorted(compareNearness).map((row) => (
            <li key={`${row.holder.kind} ${row.holder.name} ${row.limit}`}>
              <Limit row={row} now={now} />
            </li>
          ))}
        </ul>
      )}
    </Card>
  );
}

/** What refuses requests, or will soon, comes first. */
function compareNearness(a: LimitRow, b: LimitRow): number {
  return readShare(b) - readShare(a);
}

function readShare({ usd, spent_usd: spent }: LimitRow): number {
  return Number(usd) === 0 ? 1 : Number(spent) / Number(usd);
}

export function Limit({ row, now }: { readonly row: LimitRow; readonly now: number }) {
  const { holder, limit, usd, spent_usd: spent, left_usd: left, resets, warning } = row;
  const isSpent = left === "0";
  const end = resets === null ? "" : `, resets in ${formatSpan(Date.parse(resets) - now)}`;
  const label = `${holder.kind} ${holder.name}, ${nameLimit(limit)}`;
  const tone = isSpent ? "bad" : warning === null ? "good" : "warn";
  return (
    <>
      <div class="limit-head">
        <span>
          <b>{holder.name}</b>{" "}
          <span class="quiet">
            {holder.kind === "group" ? "group, " : ""}
            {nameLimit(limit)}
          </span>
        </span>
        <span class="number">
          {formatUsd(spent)} <span class="quiet">of {formatUsd(usd)}</span>
        </span>
      </div>
      <Bar tone={tone} share={readShare(row)} label={label} />
      <p class={isSpent ? "quiet bad-text" : "quiet"}>
        {isSpent ? "Nothing is left: requests are refused" : `${formatUsd(left)} left`}
        {end}
      </p>
    </>
  );
}

function Tokens({ total }: { readonly total: DescribedTotals }) {
  const kinds = Object.entries(total.usage).filter(([, count]) => count > 0);
  const most = Math.max(1, ...kinds.map(([, count]) => count));
  const rate = total.cache_hit_rate;
  return (
    <Card
      title="Tokens"
      note={`${formatCount(total.requests)} ${total.requests === 1 ? "request" : "requests"}`}
    >
      {kinds.length === 0 ? (
        <Empty title="None yet." />
      ) : (
        <table class="kinds">
          <caption class="hidden">Tokens by kind</caption>
          <thead class="hidden">
            <tr>
              <th scope="col">Kind</th>
              <th scope="col">Share</th>
              <th scope="col">Tokens</th>
            </tr>
          </thead>
          <tbody>
            {kinds.map(([kind, count]) => (
              <tr key={kind}>
                <th scope="row">{nameKind(kind)}</th>
                <td class="share" aria-hidden="true">
                  <Bar tone="plain" share={count / most} />
                </td>
                <td class="number" title={formatCount(count)}>
                  {formatShort(count)}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
      <p class="fact">
        <span>Cache hit rate</span>
        <b>{formatRate(rate)}</b>
      </p>
      <p class="quiet">The share of all input that was read from the cache.</p>
      {total.paid_by_plan_usd !== undefined && (
        <p class="fact">
          <span>Paid by a plan, at official prices</span>
          <b>{formatUsd(total.paid_by_plan_usd)}</b>
        </p>
      )}
    </Card>
  );
}

/** What the amounts do not include. */
function Gaps({ data: { total, unpriced, unreadable } }: { readonly data: OverviewReply }) {
  const isWhole = unpriced.length === 0 && total.unknown === 0 && total.partial === 0 && unreadable === 0;
  return (
    <Card title="Gaps and estimates">
      {isWhole ? (
        <Empty
          title={total.requests === 0 ? "No requests yet." : "None: every request has its exact price."}
        />
      ) : (
        <ul class="facts">
          {unpriced.map(({ name, requests }) => (
            <li key={name} class="fact">
              <span>
                <b>{name}</b> has no price: not in these amounts
              </span>
              <span class="number">{formatCount(requests)}</span>
            </li>
          ))}
          <Fact count={total.unknown} text="Usage is not known: not in these amounts" />
          <Fact count={total.partial} text="Ended early: partly estimated, and included" />
          <Fact count={unreadable} text="Lines that cannot be read: gateway ledger verify says why" />
        </ul>
      )}
      {unpriced.length > 0 && (
        <p class="quiet">
          Add the price to <code>prices</code> in the config file, then run{" "}
          <code>gateway ledger reprice</code>.
        </p>
      )}
    </Card>
  );
}

function Fact({ count, text }: { readonly count: number; readonly text: string }) {
  if (count === 0) return null;
  return (
    <li class="fact">
      <span>{text}</span>
      <span class="number">{formatCount(count)}</span>
    </li>
  );
}
