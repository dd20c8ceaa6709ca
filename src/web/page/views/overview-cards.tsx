// The overview's cards below the chart.

import { adviseOn, describeCause } from "../../../billing/reports/words.ts";
import type { Totals } from "../../../billing/reports/sums.ts";
import type { LimitRow } from "../../../gateway/api/documents.ts";
import type { Document } from "../../../gateway/api/reports.ts";
import { AsOf } from "../parts/scope-bar.tsx";
import { Amount, Bar, Card, Charge, Empty, Waiting } from "../parts/basic.tsx";
import { type Column, Table } from "../parts/table.tsx";
import {
  countOf,
  formatCount,
  formatRate,
  formatShort,
  formatSpan,
  nameKind,
  nameLimit,
} from "../parts/format.ts";
import { hrefOf } from "../state/route.ts";
import { askScoped, hrefScoped, type ViewScope } from "../state/scope.ts";
import { spaceOut, useAfterChange, useData, useNow } from "../state/use.ts";
import { compareNearness, readPercent } from "./matters.tsx";

export function Limits({ limits }: { readonly limits: readonly LimitRow[] }) {
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

const REFRESH_MS = 15_000;

export function Misses({ scope, asOf }: { readonly scope: ViewScope; readonly asOf: string }) {
  const loaded = useData<Document<"cache">>(`reports/cache?${askScoped(scope)}`);
  const { data } = loaded;
  useAfterChange(asOf, spaceOut(REFRESH_MS, loaded.tookMs), loaded.load);
  const note = data !== null && (
    <>
      {formatCount(data.total.misses)}, <AsOf time={data.as_of} />
    </>
  );
  return (
    <Card title="Cache misses" note={note} id="misses">
      <Waiting of={loaded} text="Counting …" />
      {data !== null && data.causes.length === 0 && <Empty title="No prompt missed the cache." />}
      {data !== null && data.causes.length > 0 && (
        <>
          <ul class="causes">
            {data.causes.slice(0, 6).map((cause) => (
              <li key={describeCause(cause)}>
                <p class="fact">
                  <b>{describeCause(cause)}</b>
                  <span class="number">
                    <span class="quiet">
                      {cause.misses === 1 ? "1 miss" : `${formatCount(cause.misses)} misses`}
                    </span>{" "}
                    <Charge usd={cause.usd} />
                  </span>
                </p>
                <p class="quiet">{writeHelp(adviseOn(cause))}</p>
              </li>
            ))}
          </ul>
          <p class="fact total">
            <a href={hrefScoped(["sessions"], scope, { order: "missed" })}>
              {data.causes.length > 6 ? `All ${data.causes.length} causes` : "All together"}
            </a>
            <b class="number">
              <Charge usd={data.total.usd} />
            </b>
          </p>
        </>
      )}
    </Card>
  );
}

function writeHelp(help: string | null): string | null {
  if (help === null) return null;
  const text = help.replaceAll("`", "");
  return `${text.slice(0, 1).toUpperCase()}${text.slice(1)}.`;
}

export function Limit({
  row,
  now,
  short = false,
}: {
  readonly row: LimitRow;
  readonly now: number;
  readonly short?: boolean;
}) {
  const { holder, limit, usd, spent_usd: spent, left_usd: left, resets, warning } = row;
  const isSpent = left === "0";
  const end = resets === null ? "" : `, resets in ${formatSpan(Date.parse(resets) - now)}`;
  const label = `${holder.kind} ${holder.name}, ${nameLimit(limit)}`;
  const tone = isSpent ? "bad" : warning === null ? "good" : "warn";
  return (
    <>
      <div class="limit-head">
        <span>
          {!short && <b>{holder.name} </b>}
          <span class="quiet">
            {holder.kind === "group" ? "group, " : ""}
            {nameLimit(limit)}
          </span>
        </span>
        <span class="number">
          <a href={hrefOfLimit(row)}>
            <Charge usd={spent} />
          </a>{" "}
          <span class="quiet">
            of <Amount usd={usd} />
          </span>
        </span>
      </div>
      <Bar tone={tone} share={readPercent(row) / 100} label={label} />
      {(isSpent || !short) && (
        <p class={isSpent ? "quiet bad-text" : "quiet"}>
          {isSpent ? (
            "Nothing is left: requests are refused"
          ) : (
            <>
              <Amount usd={left} /> left
            </>
          )}
          {end}
        </p>
      )}
    </>
  );
}

const PERIODS: Readonly<Record<string, string>> = { usd_per_day: "today", usd_per_month: "month" };

function hrefOfLimit({ holder: { kind, name }, limit }: LimitRow): string {
  const scope = { period: PERIODS[limit] ?? "all", filters: { [kind]: name } };
  return hrefScoped(["sessions"], scope, { order: "charge" });
}

export function Tokens({ total }: { readonly total: Totals }) {
  const kinds = Object.entries(total.usage).filter(([, count]) => count > 0);
  const most = Math.max(1, ...kinds.map(([, count]) => count));
  const columns: readonly Column<readonly [kind: string, count: number]>[] = [
    ["Kind", "", ([kind]) => nameKind(kind)],
    ["Share", "share", ([, count]) => <Bar tone="plain" share={count / most} />],
    ["Tokens", "number", ([, count]) => <span title={formatCount(count)}>{formatShort(count)}</span>],
  ];
  return (
    <Card title="Tokens" note={countOf(total.requests, "request")}>
      {kinds.length === 0 ? (
        <Empty title="None yet." />
      ) : (
        <>
          <Table name="Tokens by kind" columns={columns} rows={kinds} keyOf={([kind]) => kind} small />
          <p class="fact">
            <span>Cache hit rate</span>
            <b>{formatRate(total.cache_hit_rate)}</b>
          </p>
          <p class="quiet">The share of all input that was read from the cache.</p>
        </>
      )}
    </Card>
  );
}
