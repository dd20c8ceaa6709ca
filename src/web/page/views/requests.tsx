// All requests of the ledger that fit, the newest first. Only the rows that can be seen are loaded and drawn.

import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { MAX_ROWS, type RequestRow, type RequestsReply } from "../../api.ts";
import { Empty, Failure } from "../parts/basic.tsx";
import { saveCsv } from "../parts/csv.ts";
import { formatCount, formatUsd } from "../parts/format.ts";
import { listColumns } from "../parts/request-cells.tsx";
import { AsOf, ScopeBar } from "../parts/scope-bar.tsx";
import { Cells, Head } from "../parts/table.tsx";
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

/** Of one question: what has arrived, the page that is on its way, and those to ask for after it. */
interface Loading {
  readonly question: string;
  list: List | null;
  asked: number | null;
  wanted: number[];
}

function startLoading(question: string): Loading {
  return { question, list: null, asked: null, wanted: [] };
}

/** Asks for one page at a time: who scrolls fast is past most of them before an answer comes. Each answer says how many lines
 *  the ledger has: with another number, the places of all rows are others. */
function useRows(question: string): Rows {
  const [{ error }, show] = useState<Pick<Rows, "error">>({ error: null });
  const state = useRef(startLoading(question));
  if (state.current.question !== question) state.current = startLoading(question);
  const { current } = state;
  const see = useCallback(
    (first: number, last: number, how?: "again"): void => {
      const from = Math.floor(first / PAGE);
      const pages = Array.from({ length: Math.floor(last / PAGE) - from + 1 }, (_, index) => from + index);
      current.wanted = pages.filter(
        (page) => page !== current.asked && (how === "again" || current.list?.pages.has(page) !== true),
      );
      if (current.asked === null)
        void loadWanted(current, (problem) => {
          if (state.current === current) show({ error: problem });
        });
    },
    [current],
  );
  return { list: current.list, error, see };
}

async function loadWanted(loading: Loading, show: (error: string | null) => void): Promise<void> {
  for (;;) {
    const page = loading.wanted.shift() ?? null;
    loading.asked = page;
    if (page === null) return;
    const query = `${loading.question}&from=${page * PAGE}&most=${PAGE}`;
    try {
      const reply = await get<RequestsReply>(`requests?${query}`);
      const before = loading.list?.lines === reply.lines ? loading.list.pages : [];
      loading.list = { ...reply, pages: new Map([...before, [page, reply.rows]]) };
      show(null);
    } catch (failure) {
      show(describeError(failure));
    }
  }
}

export function RequestsView({ route }: { readonly route: Route }) {
  const scope = readScope(route);
  const [, id] = route.path;
  return (
    <>
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
        <SaveAll scope={scope} total={list?.total ?? 0} />
      </header>
      {error !== null && <Failure text={error} retry={() => see(0, 0, "again")} />}
      {list?.total === 0 ? (
        <Empty title="No request fits.">
          <p>Refused requests cost nothing and have no line in the ledger: the view Live shows the latest.</p>
        </Empty>
      ) : (
        // Another question begins at the top.
        <VirtualTable key={question} rows={rows} scope={scope} />
      )}
    </section>
  );
}

interface VirtualProps {
  readonly rows: Rows;
  readonly scope: ViewScope;
}

function VirtualTable({ rows: { list, see }, scope }: VirtualProps) {
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
    if ((box.current?.scrollTop ?? 0) === 0) see(0, seen, "again");
  }, [see, seen]);
  useFresh(REFRESH_MS, refresh);
  const columns = listColumns("began", (id) => hrefScoped(["requests", id], scope));
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
          <Head columns={columns} />
          <tbody>
            <Space rows={from} />
            {places.map((place) => {
              const row = list?.pages.get(Math.floor(place / PAGE))?.[place % PAGE];
              return (
                <tr key={place} class="row" aria-rowindex={place + 2}>
                  {row === undefined ? (
                    <td class="quiet" colSpan={columns.length}>
                      …
                    </td>
                  ) : (
                    <Cells columns={columns} row={row} />
                  )}
                </tr>
              );
            })}
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

/** More columns than there are. */
const MANY = 99;

/** The rows that cannot be seen have their height. */
function Space({ rows }: { readonly rows: number }) {
  if (rows <= 0) return null;
  return (
    <tr aria-hidden="true" class="space">
      <td colSpan={MANY} style={{ height: `${rows * ROW_PX}px` }} />
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
