// What happens now: open streams, and requests as they end.

import { useState } from "preact/hooks";
import { FAILED, type FilterName, type Filters, FILTERS, type RequestRecord } from "../../api.ts";
import { Card, Empty, Pill } from "../parts/basic.tsx";
import { formatClock, formatCount, formatFull, formatSpan, isFailed, localize } from "../parts/format.ts";
import { listColumns, toRow } from "../parts/request-cells.tsx";
import { ScopeBar } from "../parts/scope-bar.tsx";
import { type Column, Table } from "../parts/table.tsx";
import type { StreamState } from "../state/live.ts";
import { go, type Route } from "../state/route.ts";
import { hrefFrom, hrefScoped, readScope } from "../state/scope.ts";
import { useLive, useNow } from "../state/use.ts";
import { RequestPanel } from "./request.tsx";

export function LiveView({ route }: { readonly route: Route }) {
  const { streams, requests, notices, websockets } = useLive();
  const [, id] = route.path;
  const scope = readScope(route);
  const find = route.query.get("find") ?? "";
  const more = find === "" ? {} : { find };
  const open = streams.filter((stream) => fits(stream, scope.filters));
  const linkTo = (...path: string[]): string =>
    find === "" ? hrefFrom(route, ["live", ...path]) : hrefScoped(["live", ...path], scope, more);
  return (
    <>
      <ScopeBar path={["live"]} scope={scope} more={more} names={FILTERS} />
      <div class="column">
        <Card title="Open streams" note={describeTraffic(open, websockets)}>
          <Streams streams={open} linkTo={linkTo} />
        </Card>
        <Latest
          requests={requests}
          filters={scope.filters}
          find={find}
          setFind={(words) => go(hrefScoped(["live"], scope, words === "" ? {} : { find: words }), "replace")}
          linkTo={linkTo}
        />
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
          onClose={() => go(linkTo(), "replace")}
        />
      )}
    </>
  );
}

/** A stream has no outcome yet, and does not say its group. */
function fits(row: StreamState | RequestRecord, filters: Filters): boolean {
  const { tool, label, session } = row.client ?? {};
  const names: Partial<Record<FilterName, string | null | undefined>> = { ...row, tool, label, session };
  return FILTERS.every((name) => {
    const wanted = filters[name];
    if (wanted === undefined || !(name in names)) return true;
    const own = names[name] ?? "";
    return wanted === own || (name === "outcome" && wanted === FAILED && isFailed(own));
  });
}

function describeTraffic(streams: readonly StreamState[], websockets: number): string {
  const rate = `${formatRate(streams)} tokens/s`;
  return websockets === 0 ? rate : `${rate}, ${websockets} open WebSocket${websockets === 1 ? "" : "s"}`;
}

function formatRate(streams: readonly StreamState[]): string {
  return formatCount(streams.reduce((sum, { tokensPerSecond }) => sum + tokensPerSecond, 0));
}

interface Links {
  readonly linkTo: (id: string) => string;
}

function Streams({ streams, linkTo }: Links & { readonly streams: readonly StreamState[] }) {
  const now = useNow(1000);
  if (streams.length === 0) return <Empty title="No stream is open now." />;
  const columns: readonly Column<StreamState>[] = [
    [
      "Since",
      "",
      ({ id, since }) => (
        <>
          <span class="dot" aria-hidden="true" />
          <a href={linkTo(id)}>{formatClock(since)}</a>
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
  return <Table name="Open streams" columns={columns} rows={streams} keyOf={({ id }) => id} />;
}

interface LatestProps extends Links {
  readonly requests: readonly RequestRecord[];
  readonly filters: Filters;
  readonly find: string;
  readonly setFind: (words: string) => void;
}

/** They can be filtered, and held while somebody reads. */
function Latest({ requests, filters, find, setFind, linkTo }: LatestProps) {
  const [held, setHeld] = useState<readonly RequestRecord[] | null>(null);
  const all = held ?? requests;
  const found = filterRequests(
    all.filter((request) => fits(request, filters)),
    find,
  );
  const note = found.length === all.length ? "The last to end first" : `${found.length} of ${all.length}`;
  return (
    <Card title="Latest requests" note={note}>
      {requests.length > 0 && (
        <p class="actions">
          <input
            type="search"
            aria-label="Filter the requests"
            placeholder="model, key, tool, status …"
            value={find}
            onInput={(event) => setFind(event.currentTarget.value)}
          />
          <button
            type="button"
            aria-pressed={held !== null}
            onClick={() => setHeld(held === null ? requests : null)}
          >
            {held === null ? "Pause" : `Go on (${countNew(requests, held)} new)`}
          </button>
        </p>
      )}
      {requests.length > 0 && found.length === 0 ? (
        <Empty title="No request fits." />
      ) : (
        <Requests requests={found} linkTo={linkTo} />
      )}
    </Card>
  );
}

function countNew(requests: readonly RequestRecord[], held: readonly RequestRecord[]): number {
  const known = requests.findIndex(({ id }) => id === held[0]?.id);
  return known < 0 ? requests.length : known;
}

/** Each word has to be in one of the columns. */
function filterRequests(requests: readonly RequestRecord[], text: string): readonly RequestRecord[] {
  const words = text
    .toLowerCase()
    .split(/\s+/)
    .filter((word) => word !== "");
  if (words.length === 0) return requests;
  return requests.filter(({ model, key, group, channel, client, status, outcome, id }) => {
    const { tool, session, label } = client ?? {};
    const columns = [model, key, group, channel, tool, session, label, `${status}`, outcome, id];
    const shown = columns.map((column) => (column ?? "").toLowerCase());
    return words.every((word) => shown.some((column) => column.includes(word)));
  });
}

function Requests({ requests, linkTo }: Links & { readonly requests: readonly RequestRecord[] }) {
  if (requests.length === 0)
    return (
      <Empty title="No request has come since the gateway was started.">
        <p>
          Connect a tool with <code>gateway run claude</code>. What it sends appears here.
        </p>
      </Empty>
    );
  const problems = new Map(requests.map(({ id, problem }) => [id, problem]));
  return (
    <Table
      name="Latest requests"
      columns={listColumns("ended", linkTo)}
      rows={requests.map(toRow)}
      keyOf={({ id }) => id}
      describe={({ id }) => ({ title: problems.get(id) ?? "" })}
    />
  );
}
