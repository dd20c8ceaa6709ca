// Open streams, the ledger's requests, and requests without a line.

import type { RequestRow } from "../../../billing/reports/requests.ts";
import type { Filter } from "../../../billing/reports/sums.ts";
import { describeCause, FAILED, type FilterName, FILTERS } from "../../../billing/reports/words.ts";
import type { Document } from "../../../gateway/api/reports.ts";
import type { RequestRecord } from "../../../gateway/observe/observer.ts";
import { Amount, Card, Charge, Empty, Moment, Pill, Waiting } from "../parts/basic.tsx";
import {
  formatClock,
  formatCount,
  formatFull,
  formatMs,
  formatRate,
  formatShort,
  formatSpan,
  isFailed,
  localize,
} from "../parts/format.ts";
import { AsOf, ScopeBar } from "../parts/scope-bar.tsx";
import { type Column, ShowMore, Table, useMore } from "../parts/table.tsx";
import type { StreamState } from "../state/live.ts";
import { go, type Route } from "../state/route.ts";
import { askScoped, hrefScoped, readScope, type ViewScope } from "../state/scope.ts";
import { spaceOut, useData, useFresh, useLive, useNow } from "../state/use.ts";
import { hasLine, RequestPanel } from "./request.tsx";

const REFRESH_MS = 2000;

export function RequestsView({ route }: { readonly route: Route }) {
  const { streams, requests, notices } = useLive();
  const scope = readScope(route);
  const [, id] = route.path;
  const linkTo = (request: string): string => hrefScoped(["requests", request], scope);
  const open = streams.filter((stream) => fits(stream, scope.filters));
  const unbilled = requests.filter((request) => request.problem !== null && !hasLine(request));
  const others = unbilled.filter((request) => fits(request, scope.filters));
  return (
    <>
      <ScopeBar path={["requests"]} scope={scope} />
      <div class="column">
        {open.length > 0 && <Streams streams={open} linkTo={linkTo} />}
        <Requests scope={scope} linkTo={linkTo} />
        {others.length > 0 && <Unbilled requests={others} linkTo={linkTo} />}
        {notices.length > 0 && (
          <Card title="Messages">
            <ul class="notices">
              {notices.map(({ time, level, text }) => (
                <li key={`${time} ${text}`}>
                  <time title={formatFull(time)}>{formatClock(time)}</time>
                  <Pill tone={level === "error" ? "bad" : level === "warning" ? "warn" : "calm"}>
                    {level}
                  </Pill>
                  <span class="text">{localize(text)}</span>
                </li>
              ))}
            </ul>
          </Card>
        )}
      </div>
      {id !== undefined && (
        <RequestPanel
          id={id}
          request={requests.find((each) => each.id === id) ?? null}
          isOpen={streams.some((each) => each.id === id)}
          onClose={() => go(hrefScoped(["requests"], scope), "replace")}
        />
      )}
    </>
  );
}

/** A stream has no outcome and no group yet. */
function fits(row: StreamState | RequestRecord, filters: Filter): boolean {
  const { tool, label, session } = row.client ?? {};
  const names: Partial<Record<FilterName, string | null | undefined>> = {
    ...row,
    tool,
    label,
    session,
  };
  return FILTERS.every((name) => {
    const wanted = filters[name];
    if (wanted === undefined || !(name in names)) return true;
    const own = names[name] ?? "";
    return wanted === own || (name === "outcome" && wanted === FAILED && isFailed(own));
  });
}

interface Links {
  readonly linkTo: (id: string) => string;
}

function Streams({ streams, linkTo }: Links & { readonly streams: readonly StreamState[] }) {
  const now = useNow(1000);
  const columns: readonly Column<StreamState>[] = [
    [
      "Since",
      "",
      ({ since }) => (
        <>
          <span class="dot" aria-hidden="true" />
          {formatClock(since)}
        </>
      ),
    ],
    ["Model", "name", ({ model }) => model],
    ["Key", "name more", ({ key }) => key],
    ["Channel", "name some", ({ channel }) => channel],
    ["Running", "number more", ({ since }) => formatSpan(now - since)],
    ["Tokens", "number more", ({ tokens }) => formatCount(tokens)],
    ["Tokens/s", "number", ({ tokensPerSecond }) => formatCount(tokensPerSecond)],
  ];
  return (
    <Card title="Open streams">
      <Table
        name="Open streams"
        columns={columns}
        rows={streams}
        keyOf={({ id }) => id}
        hrefOf={({ id }) => linkTo(id)}
      />
    </Card>
  );
}

function Requests({ scope, linkTo }: Links & { readonly scope: ViewScope }) {
  const question = askScoped(scope);
  const more = useMore(question);
  const loaded = useData<Document<"requests">>(`reports/requests?${question}&most=${more.most}`);
  const { data, load, tookMs } = loaded;
  useFresh(spaceOut(REFRESH_MS, tookMs), load);
  const note = data !== null && (
    <>
      {formatCount(data.total)} for{" "}
      <b>
        <Amount usd={data.charge_usd} />
      </b>
      , <AsOf time={data.as_of} />
    </>
  );
  return (
    <Card title="Requests" note={note}>
      <Waiting of={loaded} text="Counting …" />
      {data?.total === 0 && (
        <Empty title="No request fits.">
          <p>
            Connect a tool with <code>gateway run claude</code>. Its requests appear here.
          </p>
        </Empty>
      )}
      {data !== null && data.total > 0 && (
        <>
          <Table
            name="Requests"
            columns={REQUEST_COLUMNS}
            rows={data.rows}
            keyOf={({ id }) => id}
            hrefOf={({ id }) => linkTo(id)}
          />
          {data.rows.length < data.total && <ShowMore {...more} />}
        </>
      )}
    </Card>
  );
}

function Unbilled({ requests, linkTo }: Links & { readonly requests: readonly RequestRecord[] }) {
  const columns: readonly Column<RequestRecord>[] = [
    ["Ended", "", ({ time, durationMs }) => formatClock(time + durationMs)],
    ["Key", "name more", ({ key }) => key],
    ["Model", "name more", ({ model }) => model],
    ["Status", "", ({ status, outcome }) => <Pill tone={isFailed(outcome) ? "bad" : "warn"}>{status}</Pill>],
    ["Why", "text", ({ problem, outcome }) => localize(problem ?? outcome.replaceAll("_", " "))],
  ];
  return (
    <Card title="Without a line in the ledger" note="refused, or not answered by a channel">
      <Table
        name="Requests without a line"
        columns={columns}
        rows={requests}
        keyOf={({ id }) => id}
        hrefOf={({ id }) => linkTo(id)}
      />
    </Card>
  );
}

const REQUEST_COLUMNS: readonly Column<RequestRow>[] = [
  ["Time", "", ({ time }) => <Moment time={time} />],
  ["Model", "name", ({ model }) => model],
  ["Key", "name more", ({ key }) => key],
  ["Tool", "name some", ({ tool }) => tool],
  ["Label", "name some", ({ label }) => label],
  ["Session", " some", ({ session }) => session.replace(INFERRED, "").slice(0, ID_LENGTH)],
  ["Channel", "name rare", ({ channel }) => channel],
  ["Status", "", (row) => <Outcome row={row} />],
  ["First byte", "number rare", (row) => formatMs(row.first_byte_ms)],
  ["Duration", "number some", (row) => formatMs(row.duration_ms)],
  ["In", "number some", ({ input }) => (input === 0 ? null : formatShort(input))],
  ["Cached", "number some", (row) => (row.input === 0 ? null : <Cached row={row} />)],
  ["Out", "number some", ({ output }) => (output === 0 ? null : formatShort(output))],
  ["Charge", "number", (row) => <Charge usd={row.charge_usd} plan={row.paid_by_plan_usd} />],
];

const ID_LENGTH = 8;
const INFERRED = /^inferred-/;

function Cached({ row: { cached, input, missed } }: { readonly row: RequestRow }) {
  const share = formatRate(cached / input);
  if (missed === undefined) return share;
  return (
    <span class="missed" title={`${formatCount(missed.tokens)} tokens were missed: ${describeCause(missed)}`}>
      {share}
    </span>
  );
}

function Outcome({ row: { outcome, status } }: { readonly row: RequestRow }) {
  if (outcome === "complete" && (status ?? 0) < 400) return <Pill tone="good">{status ?? "ok"}</Pill>;
  const tone = outcome === "client_closed" ? "calm" : isFailed(outcome) ? "bad" : "warn";
  return (
    <Pill tone={tone}>
      {status}
      <span class="more"> {outcome.replaceAll("_", " ")}</span>
    </Pill>
  );
}
