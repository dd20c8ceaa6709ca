// A session's drawer: requests over time, agents and cache misses.

import { addUsd, formatUsd as writeUsd, parseUsd, ZERO_USD } from "../../../lib/money.ts";
import type { SessionDocument } from "../../../billing/reports/sessions.ts";
import type { Totals } from "../../../billing/reports/sums.ts";
import { describeCause, describeRise, listTree } from "../../../billing/reports/words.ts";
import type { Document } from "../../../gateway/api/reports.ts";
import type { SessionReply } from "../../../gateway/api/documents.ts";
import { MAX_ROWS } from "../../api.ts";
import { Amount, Charge, Copy, Dialog, Moment, Waiting, useWidth } from "../parts/basic.tsx";
import {
  chargeOf,
  countOf,
  formatCount,
  formatRate,
  MAIN_AGENT,
  formatClock,
  formatExact,
  formatMoment,
  formatShort,
  isFailed,
} from "../parts/format.ts";
import { SaveReport } from "../parts/save-report.tsx";
import { type Column, Table } from "../parts/table.tsx";
import { askScoped, hrefScoped } from "../state/scope.ts";
import { useData, useNow } from "../state/use.ts";
import { Limit } from "./overview-cards.tsx";
import type { RequestRow } from "../../../billing/reports/requests.ts";

export function SessionPanel({ id, onClose }: { readonly id: string; readonly onClose: () => void }) {
  const loaded = useData<SessionReply>(`reports/session?id=${encodeURIComponent(id)}`);
  return (
    <Dialog title="Session" side onClose={onClose}>
      <Waiting of={loaded} text="Reading the ledger …" />
      {loaded.data !== null && <SessionBody data={loaded.data} />}
      <p class="actions">
        <Copy text={id} label="the id of the session" />
        <SaveReport scope={{ period: "all", filters: { session: id } }} />
      </p>
    </Dialog>
  );
}

function SessionBody({ data }: { readonly data: SessionReply }) {
  const { found: session, limits } = data;
  const now = useNow(60_000);
  if (session === null) return <p class="quiet">The ledger has no such session.</p>;
  const { windows, misses } = session;
  const agents = listTree(session.agents);
  const charge = chargeOf(session);
  const rows: readonly AgentLine[] = agents.map((place) => ({ name: place.row?.agent ?? "", ...place }));
  const lines: readonly AgentLine[] = rows.length > 1 ? [...rows, { row: session }] : rows;
  return (
    <div class="column">
      <p>
        <bdi>{session.tool ?? "A tool that did not say its name"}</bdi>
        {session.label !== null && (
          <>
            , <bdi>{session.label}</bdi>
          </>
        )}
        : {countOf(session.requests, "request")}
        {charge === null ? (
          " without a price"
        ) : (
          <>
            {" "}
            for{" "}
            <b>
              <Charge usd={charge} />
            </b>
          </>
        )}
        {session.paid_by_plan_usd !== undefined && (
          <>
            , and a plan paid what costs <Amount usd={session.paid_by_plan_usd} /> by the API
          </>
        )}
        {session.inferred && ". The tool did not name this session, which ends with a pause of 30 minutes."}
      </p>
      {windows !== undefined && <p class="quiet">{describeRise(windows)}.</p>}
      {limits.map((row) => (
        <div key={row.usd}>
          <Limit row={row} now={now} />
        </div>
      ))}
      <Turns session={session.session} agents={agents.map(({ row }) => row?.agent ?? "")} />
      <Table
        name="Agents"
        columns={AGENT_COLUMNS}
        rows={lines}
        keyOf={({ name }) => name ?? "sum of all"}
        isSum={({ name }) => name === undefined}
      />
      {misses.length > 0 && <Misses misses={misses} />}
    </div>
  );
}

function Turns({ session, agents }: { readonly session: string; readonly agents: readonly string[] }) {
  const scope = { period: "all", filters: { session } };
  const loaded = useData<Document<"requests">>(`reports/requests?${askScoped(scope)}&most=${MAX_ROWS}`);
  const { data } = loaded;
  if (data === null) return <Waiting of={loaded} text="Counting …" />;
  return (
    <div>
      <Timeline turns={data.rows.toReversed()} agents={agents} />
      <p>
        <a href={hrefScoped(["requests"], scope)}>Its {countOf(data.total, "request")}</a>
        {data.total > MAX_ROWS && (
          <span class="quiet"> (the timeline has the last {formatCount(MAX_ROWS)})</span>
        )}
      </p>
    </div>
  );
}

interface AgentLine {
  /** Empty: the main agent. Absent: the sum. */
  readonly name?: string;
  readonly depth?: number;
  readonly row: (Totals & { readonly model?: string }) | null;
}

const MAX_INDENT = 6;

const AGENT_COLUMNS: readonly Column<AgentLine>[] = [
  [
    "Agent",
    "name",
    ({ name, depth = 0 }) =>
      name === undefined ? (
        "All together"
      ) : (
        <div title={name} style={{ textIndent: `${16 * Math.min(depth, MAX_INDENT)}px` }}>
          {name === "" ? MAIN_AGENT : name}
          <span class="hidden">{depth > 1 && `, level ${depth}`}</span>
        </div>
      ),
  ],
  ["Model", "name more", ({ row }) => row?.model],
  ["Requests", "number", ({ row }) => formatCount(row?.requests ?? 0)],
  ["From cache", "number", ({ row }) => row && formatRate(row.cache_hit_rate)],
  ["Charge", "number", ({ row }) => row && <Charge usd={chargeOf(row)} />],
];

type Miss = SessionDocument["misses"][number];
type MissLine = Pick<Miss, "missed" | "usd"> & Partial<Miss>;

const MISS_COLUMNS: readonly Column<MissLine>[] = [
  ["Time", "", ({ time }) => (time === undefined ? "All together" : <Moment time={time} />)],
  ["Cause", "text", ({ because }) => because && describeCause({ because })],
  ["Tokens", "number", ({ missed }) => formatCount(missed)],
  ["Cost", "number", ({ usd }) => <Charge usd={usd} />],
];

function Misses({ misses }: { readonly misses: readonly Miss[] }) {
  const usd = misses.reduce((sum, miss) => addUsd(sum, parseUsd(miss.usd ?? "0")), ZERO_USD);
  const missed = misses.reduce((sum, miss) => sum + miss.missed, 0);
  const lines: readonly MissLine[] = misses.length > 1 ? [...misses, { missed, usd: writeUsd(usd) }] : misses;
  return (
    <div>
      <h3>Prompts that should have been read from the cache, and were not</h3>
      <Table
        name="Cache misses"
        columns={MISS_COLUMNS}
        rows={lines}
        keyOf={({ id }) => id ?? "sum"}
        isSum={({ id }) => id === undefined}
      />
    </div>
  );
}

const UP_PX = 56;
const DOWN_PX = 18;
const MARK_PX = 10;
const MIN_UP_PX = 12;
const MIN_STEP_PX = 4;
const MAX_STEP_PX = 28;

/** `turns`: oldest first.
 *  `agents`: in tree order; the main agent is "". */
function Timeline({
  turns,
  agents,
}: {
  readonly turns: readonly RequestRow[];
  readonly agents: readonly string[];
}) {
  const used = agents.filter((agent) => turns.some((turn) => turn.agent === agent));
  const [box, room] = useWidth();
  const step = Math.max(MIN_STEP_PX, Math.min(MAX_STEP_PX, room / Math.max(1, turns.length)));
  const mostIn = Math.max(1, ...turns.map(({ input }) => input));
  const mostOut = Math.max(1, ...turns.map(({ output }) => output));
  const marks = [
    ["cached", "read from the cache", turns.some(({ cached }) => cached > 0)],
    ["new", "new", true],
    ["output", "output", turns.some(({ output }) => output > 0)],
    ["missed", "missed the cache", turns.some(({ missed }) => missed !== undefined)],
    ["failed", "failed", turns.some(({ outcome }) => isFailed(outcome))],
  ] as const;
  const ends = [...turns.slice(0, 1), ...turns.slice(-1)].map(({ time }) => formatMoment(Date.parse(time)));
  return (
    <figure class="timeline">
      <div class="scroll" ref={box} tabIndex={0} role="region" aria-label="Timeline">
        {used.map((agent) => (
          <Lane key={agent} agent={agent} turns={turns} step={step} most={[mostIn, mostOut]} />
        ))}
      </div>
      <figcaption>
        {ends.length > 0 && (
          <p class="quiet">
            {ends.join(" to ")}. A prompt has up to {formatShort(mostIn)} tokens, an answer{" "}
            {formatShort(mostOut)}.
          </p>
        )}
        <ul class="keys-of">
          {marks.map(
            ([name, text, isThere]) =>
              isThere && (
                <li key={name}>
                  <span class={`swatch t-${name}`} aria-hidden="true" /> {text}
                </li>
              ),
          )}
        </ul>
      </figcaption>
    </figure>
  );
}

function Lane({
  agent,
  turns,
  step,
  most: [mostIn, mostOut],
}: {
  readonly agent: string;
  readonly turns: readonly RequestRow[];
  readonly step: number;
  readonly most: readonly [number, number];
}) {
  const width = Math.max(step * turns.length, 60);
  const largest = Math.max(...turns.map((turn) => (turn.agent === agent ? turn.input : 0)));
  const base = MARK_PX + Math.max(MIN_UP_PX, Math.ceil((largest / mostIn) * UP_PX));
  const height = base + DOWN_PX;
  const bar = Math.max(1, step - (step > 6 ? 2 : 1));
  return (
    <div class="lane">
      <p class="lane-name">{agent === "" ? MAIN_AGENT : agent}</p>
      <svg width={width} height={height} viewBox={`0 0 ${width} ${height}`} aria-hidden="true">
        <line x1="0" x2={width} y1={base} y2={base} class="base" />
        {turns.map((turn, index) => {
          if (turn.agent !== agent) return null;
          const { id, input, cached, output, missed, outcome } = turn;
          const x = index * step;
          const [readPx, newPx] = [(cached / mostIn) * UP_PX, ((input - cached) / mostIn) * UP_PX];
          const outPx = Math.max(output > 0 ? 1 : 0, (output / mostOut) * DOWN_PX);
          return (
            <g key={id}>
              <title>{describeTurn(turn)}</title>
              <rect class="hit" x={x} y="0" width={step} height={height} />
              <rect class="t-cached" x={x} y={base - readPx} width={bar} height={readPx} />
              <rect class="t-new" x={x} y={base - readPx - newPx} width={bar} height={newPx} />
              <rect class="t-output" x={x} y={base + 1} width={bar} height={outPx} />
              {missed !== undefined && <circle class="t-missed" cx={x + bar / 2} cy="5" r="3" />}
              {isFailed(outcome) && <rect class="t-failed" x={x} y={base - 6} width={bar} height="12" />}
            </g>
          );
        })}
      </svg>
    </div>
  );
}

function describeTurn(turn: RequestRow): string {
  const { time, model, input, cached, output, charge_usd: charge, missed, outcome } = turn;
  return [
    `${formatClock(Date.parse(time))}, ${model}`,
    `${formatCount(input)} tokens in, ${formatCount(cached)} of them cached, ${formatCount(output)} out`,
    charge === null ? "charge not known" : formatExact(charge),
    ...(missed === undefined
      ? []
      : [`missed ${formatCount(missed.tokens)} tokens: ${describeCause(missed)}`]),
    ...(outcome === "complete" ? [] : [outcome.replaceAll("_", " ")]),
  ].join("\n");
}
