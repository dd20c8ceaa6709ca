// All requests of the ledger that fit, the newest first. Only the rows that can be seen are loaded and drawn.

import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { MAX_ROWS, type RequestRow, type RequestsReply } from "../../api.ts";
import { Empty, Failure, Head } from "../parts/basic.tsx";
import { saveCsv } from "../parts/csv.ts";
import { formatCount, formatFull, formatMoment, formatUsd } from "../parts/format.ts";
import { listColumns, RequestCells } from "../parts/request-cells.tsx";
import { AsOf, ScopeBar } from "../parts/scope-bar.tsx";
import { describeError, get } from "../state/request.ts";
import { go, type Route } from "../state/route.ts";
import { askScoped, hrefScoped, readScope, type ViewScope } from "../state/scope.ts";
import { useFresh, useLive } from "../state/use.ts";
import { RequestPanel } from "./request.tsx";

const PAGE = 100;
const ROW_PX = 36;
/** Browsers draw nothing that is much taller. A shorter period reaches the rest. */
const MAX_SHOWN = 400_000;
const REFRESH_MS = 2000;

interface List extends Pick<RequestsReply, "total" | "charge_usd" | "as_of" | "lines"> {
  readonly pages: ReadonlyMap<number, readonly RequestRow[]>;
}

interface Rows {
  readonly list: List | null;
  readonly error: string | null;
  /** Loads the pages that have these places, or all that are seen anew. */
  readonly see: (first: number, last: number, how?: "again") => void;
}

/** Each answer says how many lines the ledger has: with another number, the places of all rows are others. */
function useRows(question: string): Rows {
  const [list, setList] = useState<List | null>(null);
  const [error, setError] = useState<string | null>(null);
  const state = useRef({ question, list: null as List | null, asked: new Set<number>() });
  if (state.current.question !== question) state.current = { question, list: null, asked: new Set() };
  const load = useCallback(
    async (page: number): Promise<void> => {
      const { current } = state;
      if (current.asked.has(page)) return;
      current.asked.add(page);
      try {
        const reply = await get<RequestsReply>(`requests?${question}&from=${page * PAGE}&most=${PAGE}`);
        if (state.current !== current) return;
        const { rows } = reply;
        const before = current.list?.lines === reply.lines ? current.list.pages : [];
        current.list = { ...reply, pages: new Map([...before, [page, rows]]) };
        setList(current.list);
        setError(null);
      } catch (failure) {
        if (state.current === current) setError(describeError(failure));
      }
      current.asked.delete(page);
    },
    [question],
  );
  const see = useCallback(
    (first: number, last: number, how?: "again"): void => {
      const known = state.current.list?.pages;
      for (let page = Math.floor(first / PAGE); page <= Math.floor(last / PAGE); page += 1)
        if (how === "again" || known?.has(page) !== true) void load(page);
    },
    [load],
  );
  return { list: state.current.list === null ? null : list, error, see };
}

export function RequestsView({ route }: { readonly route: Route }) {
  const scope = readScope(route);
  const [, id] = route.path;
  return (
    <>
      <h1 class="hidden">Requests</h1>
      <ScopeBar path={["requests"]} scope={scope} />
      <Requests scope={scope} />
      {id !== undefined && <Opened id={id} scope={scope} />}
    </>
  );
}

function Opened({ id, scope }: { readonly id: string; readonly scope: ViewScope }) {
  const { requests, streams } = useLive();
  return (
    <RequestPanel
      id={id}
      request={requests.find((each) => each.id === id) ?? null}
      isOpen={streams.some((each) => each.id === id)}
      onClose={() => go(hrefScoped(["requests"], scope), "replace")}
    />
  );
}

function Requests({ scope }: { readonly scope: ViewScope }) {
  const question = askScoped(scope);
  const rows = useRows(question);
  const [isPaused, setPaused] = useState(false);
  const { list, error, see } = rows;
  return (
    <section class="card">
      <header>
        <h2>Requests</h2>
        <p class="note" role="status">
          {list === null ? (
            "Counting …"
          ) : (
            <>
              {formatCount(list.total)} for <b>{formatUsd(list.charge_usd)}</b>, <AsOf time={list.as_of} />
            </>
          )}
        </p>
        <button type="button" aria-pressed={isPaused} onClick={() => setPaused(!isPaused)}>
          {isPaused ? "Go on" : "Pause"}
        </button>
        <SaveAll scope={scope} total={list?.total ?? 0} />
      </header>
      {error !== null && <Failure text={error} retry={() => see(0, 0, "again")} />}
      {list?.total === 0 ? (
        <Empty title="No request fits.">
          <p>Refused requests cost nothing and have no line in the ledger: the view Live shows the latest.</p>
        </Empty>
      ) : (
        // Another question begins at the top.
        <VirtualTable key={question} rows={rows} scope={scope} isPaused={isPaused} />
      )}
    </section>
  );
}

interface VirtualProps {
  readonly rows: Rows;
  readonly scope: ViewScope;
  readonly isPaused: boolean;
}

function VirtualTable({ rows: { list, see }, scope, isPaused }: VirtualProps) {
  const box = useRef<HTMLDivElement>(null);
  const [first, setFirst] = useState(0);
  // The box is as high as its rows, and never higher than the window.
  const seen = Math.ceil(window.innerHeight / ROW_PX) + 1;
  const total = list?.total ?? 0;
  const shown = Math.min(total, MAX_SHOWN);
  const from = Math.min(first, Math.max(0, shown - seen));
  useEffect(() => see(from, from + seen), [see, from, seen, list?.lines]);
  // Who has scrolled down reads something: new requests would move it.
  const refresh = useCallback(() => {
    if (!isPaused && (box.current?.scrollTop ?? 0) === 0) see(0, seen, "again");
  }, [isPaused, see, seen]);
  useFresh(REFRESH_MS, refresh);
  const places = Array.from({ length: Math.min(seen, shown - from) }, (_, index) => from + index);
  return (
    <>
      <div
        class="scroll virtual"
        ref={box}
        tabIndex={0}
        role="region"
        aria-label="Requests"
        onScroll={({ currentTarget }) => setFirst(Math.floor(currentTarget.scrollTop / ROW_PX))}
      >
        <table class="rows" aria-rowcount={shown + 1}>
          <Head columns={COLUMNS} />
          <tbody>
            <Space rows={from} />
            {places.map((place) => (
              <Row
                key={place}
                row={list?.pages.get(Math.floor(place / PAGE))?.[place % PAGE]}
                place={place}
                scope={scope}
              />
            ))}
            <Space rows={shown - from - places.length} />
          </tbody>
        </table>
      </div>
      {shown < total && (
        <p class="quiet">These are the newest {formatCount(shown)}. A shorter period shows older ones.</p>
      )}
    </>
  );
}

const COLUMNS = listColumns("Time");

/** The rows that cannot be seen have their height. */
function Space({ rows }: { readonly rows: number }) {
  if (rows <= 0) return null;
  return (
    <tr aria-hidden="true" class="space">
      <td colSpan={COLUMNS.length} style={{ height: `${rows * ROW_PX}px` }} />
    </tr>
  );
}

function Row({
  row,
  place,
  scope,
}: {
  readonly row: RequestRow | undefined;
  readonly place: number;
  readonly scope: ViewScope;
}) {
  if (row === undefined)
    return (
      <tr class="row" aria-rowindex={place + 2}>
        <td class="quiet" colSpan={COLUMNS.length}>
          …
        </td>
      </tr>
    );
  const href = hrefScoped(["requests", row.id], scope);
  const began = Date.parse(row.time);
  return (
    <tr class="row" aria-rowindex={place + 2}>
      <td>
        <a href={href}>
          <time title={formatFull(began)}>{formatMoment(began)}</time>
        </a>
      </td>
      <RequestCells row={row} href={href} />
    </tr>
  );
}

function SaveAll({ scope, total }: { readonly scope: ViewScope; readonly total: number }) {
  const [done, setDone] = useState<number | null>(null);
  const save = async (): Promise<void> => {
    const rows: RequestRow[] = [];
    // The number of lines is that of the first answer: what comes meanwhile would move the others.
    for (let lines = -1; rows.length < total;) {
      setDone(rows.length);
      const question = `requests?${askScoped(scope)}&from=${rows.length}&most=${MAX_ROWS}`;
      const reply = await get<RequestsReply>(question);
      if (lines !== -1 && reply.lines !== lines) rows.length = 0;
      else rows.push(...reply.rows);
      lines = reply.lines;
      if (reply.rows.length === 0) break;
    }
    saveCsv(
      `gateway-requests-${scope.period}`,
      CSV_COLUMNS,
      rows.map((row) => CSV_COLUMNS.map((name) => row[name])),
    );
    setDone(null);
  };
  return (
    <button type="button" disabled={total === 0 || done !== null} onClick={() => void save()}>
      {done === null ? "Save as CSV" : `${formatCount(done)} of ${formatCount(total)} …`}
    </button>
  );
}

const CSV_COLUMNS = [
  "time",
  "id",
  "key",
  "group",
  "channel",
  "model",
  "tool",
  "label",
  "session",
  "agent",
  "status",
  "outcome",
  "first_byte_ms",
  "duration_ms",
  "input",
  "cached",
  "output",
  "charge_usd",
] as const satisfies readonly (keyof RequestRow)[];
