// A view's period and filters, and how to change them.

import type { ComponentChildren } from "preact";
import type { Document } from "../../../gateway/api/reports.ts";
import { type FilterName, FILTERS } from "../../../billing/reports/words.ts";
import { go } from "../state/route.ts";
import { askScoped, hrefScoped, narrow, type ViewScope, widen } from "../state/scope.ts";
import { useData } from "../state/use.ts";
import { Failure, Options } from "./basic.tsx";
import { Menu } from "./menu.tsx";
import { formatClock, listMonths, nameOf, namePeriod, PERIOD_WORDS } from "./format.ts";

interface Place {
  readonly path: readonly string[];
  readonly scope: ViewScope;
  readonly more?: Readonly<Record<string, string>>;
  readonly asOf?: string | undefined;
  /** The data is still that of the previous address. */
  readonly isCounting?: boolean;
  /** The filters of a view without a period. Other views have all filters. */
  readonly names?: readonly FilterName[];
  readonly children?: ComponentChildren;
}

export function ScopeBar({ path, scope, more = {}, asOf, isCounting = false, names, children }: Place) {
  const show = (next: ViewScope): void => go(hrefScoped(path, next, more), "replace");
  const active = (names ?? FILTERS).filter((name) => scope.filters[name] !== undefined);
  return (
    <div class={isCounting ? "scope counting" : "scope"} role="group" aria-label="What is shown">
      {names === undefined && (
        <PeriodField period={scope.period} show={(period) => show({ ...scope, period })} />
      )}
      {active.map((name) => (
        <span class="chip" key={name}>
          <span class="quiet">{name}</span>{" "}
          <b class="name" title={scope.filters[name]}>
            {nameOf(scope.filters[name] ?? "")}
          </b>
          <button
            type="button"
            aria-label={`Remove the filter ${name}`}
            onClick={() => show(widen(scope, name))}
          >
            ✕
          </button>
        </span>
      ))}
      <Menu text="Filter">
        <Filters names={names ?? FILTERS} scope={scope} show={show} />
      </Menu>
      {active.length > 1 && (
        <button type="button" class="plain" onClick={() => show({ ...scope, filters: {} })}>
          Remove all filters
        </button>
      )}
      {children}
      <span class="quiet as-of" role={isCounting ? "status" : undefined}>
        {isCounting ? "counting …" : asOf !== undefined && <AsOf time={asOf} />}
      </span>
    </div>
  );
}

export function AsOf({ time }: { readonly time: string }) {
  return (
    <>
      as of <time dateTime={time}>{formatClock(Date.parse(time))}</time>
    </>
  );
}

const MONTHS = 12;

function PeriodField({ period, show }: { readonly period: string; readonly show: (period: string) => void }) {
  const months = listMonths(MONTHS);
  const isListed = PERIOD_WORDS.includes(period) || months.includes(period);
  return (
    <select aria-label="Period" value={period} onChange={({ currentTarget: { value } }) => show(value)}>
      <Options values={PERIOD_WORDS} name={namePeriod} />
      {!isListed && <option value={period}>{namePeriod(period)}</option>}
      <optgroup label="Months">
        <Options values={months} name={namePeriod} />
      </optgroup>
    </select>
  );
}

function Filters({
  names,
  scope,
  show,
}: {
  readonly names: readonly FilterName[];
  readonly scope: ViewScope;
  readonly show: (scope: ViewScope) => void;
}) {
  const { data, error, load } = useData<Document<"names">>(`reports/names?${askScoped(scope)}`);
  if (error !== null) return <Failure text={error} retry={load} />;
  return (
    <div class="fields">
      {names
        .filter((name) => name !== "session" && scope.filters[name] === undefined)
        .map((name) => (
          <label class="field" key={name}>
            <span>{name}</span>
            <select
              value=""
              onChange={({ currentTarget: { value } }) => show(narrow(scope, name, value.slice(1)))}
            >
              <option value="">{data === null ? "Reading …" : "all"}</option>
              {data?.[name]?.map((each) => (
                // `=` in front, because a name may be empty.
                <option key={each} value={`=${each}`}>
                  {nameOf(each)}
                </option>
              ))}
            </select>
          </label>
        ))}
    </div>
  );
}
