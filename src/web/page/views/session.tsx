// One session: its requests over time, its agents, and what its prompts missed in the cache.

import { addUsd, formatUsd as writeUsd, parseUsd, ZERO_USD } from "../../../lib/money.ts";
import type {
  AgentRow,
  Miss,
  ReachedLimit,
  RequestRecord,
  RequestRow,
  RequestsReply,
  SessionReply,
  SessionRow,
} from "../../api.ts";
import { Copy, Dialog, Failure, Moment } from "../parts/basic.tsx";
import { ContextBars } from "../parts/context-bars.tsx";
import { formatCount, formatRate, formatUsd, localize, MAIN_AGENT, nameLimit } from "../parts/format.ts";
import { toRow } from "../parts/request-cells.tsx";
import { Amount, type Column, Table } from "../parts/table.tsx";
import { Timeline, type TurnRow } from "../parts/timeline.tsx";
import { hrefOf } from "../state/route.ts";
import { askScoped, hrefScoped } from "../state/scope.ts";
import { useData, useLive, useNow } from "../state/use.ts";
import { Limit } from "./overview-cards.tsx";

export function SessionPanel({ id, onClose }: { readonly id: string; readonly onClose: () => void }) {
  const { data, error, load } = useData<SessionReply>(`session?id=${encodeURIComponent(id)}`);
  return (
    <Dialog title="Session" side onClose={onClose}>
      {error !== null && <Failure text={error} retry={load} />}
      {data === null ? (
        error === null && <p class="quiet">Reading the ledger …</p>
      ) : (
        <SessionBody data={data} />
      )}
      <p class="actions">
        <Copy text={id} label="the id of the session" />
      </p>
    </Dialog>
  );
}

function SessionBody({ data }: { readonly data: SessionReply }) {
  const { session, agents, limits, reached, rise, context } = data;
  const now = useNow(60_000);
  if (session === null) return <p class="quiet">The ledger has no such session.</p>;
  const misses = agents.flatMap((agent) => agent.misses);
  return (
    <div class="column">
      <p>
        <bdi>{session.tool ?? "A tool that did not say its name"}</bdi>
        {session.label !== null && (
          <>
            , <bdi>{session.label}</bdi>
          </>
        )}
        : {formatCount(session.requests)} requests for <b>{formatUsd(session.charge_usd, 4)}</b>
        {session.paid_by_plan_usd !== undefined &&
          `, and a plan paid what costs ${formatUsd(session.paid_by_plan_usd, 4)} by the API`}
        {session.inferred && ". The tool names no session: these requests follow each other."}
      </p>
      {rise !== undefined && <p class="quiet">{rise}.</p>}
      {limits.map((row) => (
        <div key={row.usd}>
          <Limit row={row} now={now} />
        </div>
      ))}
      <Turns session={session.session} agents={agents.map(({ name }) => name)} reached={reached} />
      {context.length > 0 && (
        <div>
          <h3>What its prompts consisted of</h3>
          <ContextBars context={context} />
        </div>
      )}
      <Agents agents={agents} session={session} />
      {misses.length > 0 && <Misses misses={misses} />}
    </div>
  );
}

/** A longer session shows its last requests. */
const MAX_TURNS = 1000;

interface TurnsProps {
  readonly session: string;
  readonly agents: readonly string[];
  readonly reached: readonly ReachedLimit[];
}

function Turns({ session, agents, reached }: TurnsProps) {
  const { requests } = useLive();
  const scope = { period: "all", filters: { session } };
  const { data, error, load } = useData<RequestsReply>(`requests?${askScoped(scope)}&most=${MAX_TURNS}`);
  if (error !== null) return <Failure text={error} retry={load} />;
  if (data === null) return <p class="quiet">Counting …</p>;
  const rows = data.rows.toReversed();
  const turns = [
    ...markLimits(rows, reached),
    ...requests.flatMap((request) => describeRefused(request, session)),
  ].toSorted((a, b) => (a.time < b.time ? -1 : a.time > b.time ? 1 : 0));
  return (
    <div>
      <Timeline session={session} turns={turns} agents={agents} />
      <p>
        <a href={hrefScoped(["requests"], scope)}>
          {data.total === 1 ? "Its request" : `Its ${formatCount(data.total)} requests`}
        </a>
        {data.total > MAX_TURNS && (
          <span class="quiet"> (the timeline has the last {formatCount(MAX_TURNS)})</span>
        )}
      </p>
    </div>
  );
}

/** Which of these requests came with a limit that was reached, or next after it. */
function markLimits(rows: readonly RequestRow[], reached: readonly ReachedLimit[]): TurnRow[] {
  return rows.map((row, index) => {
    const previous = rows[index - 1]?.time ?? row.time;
    const own = reached.filter(({ time }) => time <= row.time && (time > previous || time === row.time));
    return own.length === 0 ? row : { ...row, limit: own.map(describeReached).join("\n") };
  });
}

function describeReached({ holder: { kind, name }, limit, usd }: ReachedLimit): string {
  const who = kind === "session" ? "The session" : `The ${kind} ${name}`;
  return `${who} has reached its limit of ${formatUsd(usd)} ${nameLimit(limit)}`;
}

/** The ledger has no refused requests; the live feed has those of the last hundreds. */
function describeRefused(request: RequestRecord, session: string): TurnRow[] {
  const { client, outcome, problem } = request;
  if (outcome !== "refused" || client?.session !== session) return [];
  return [{ ...toRow(request), limit: problem === null ? "refused" : localize(problem) }];
}

/** An agent, or all of them. */
type AgentLine = Pick<AgentRow, "requests" | "cache_hit_rate" | "charge_usd"> &
  Partial<Pick<AgentRow, "name" | "depth" | "model">>;

const MAX_INDENT = 6;

function Agents({ agents, session }: { readonly agents: readonly AgentRow[]; readonly session: SessionRow }) {
  const linkTo = (agent: string): string =>
    hrefScoped(["requests"], { period: "all", filters: { session: session.session, agent } });
  const columns: readonly Column<AgentLine>[] = [
    [
      "Agent",
      "name",
      ({ name, depth = 0 }) =>
        name === undefined ? (
          "All together"
        ) : (
          <div title={name} style={{ textIndent: `${16 * Math.min(depth, MAX_INDENT)}px` }}>
            <a href={linkTo(name)}>{name === "" ? MAIN_AGENT : name}</a>
            <span class="hidden">{depth > 1 && `, level ${depth}`}</span>
          </div>
        ),
    ],
    ["Model", "name more", ({ model }) => model],
    ["Requests", "number", ({ requests }) => formatCount(requests)],
    ["From cache", "number", (row) => formatRate(row.cache_hit_rate)],
    [
      "Charge",
      "number",
      ({ charge_usd: charge, name }) =>
        name === undefined ? (
          formatUsd(charge, 4)
        ) : (
          <Amount text={formatUsd(charge, 4)} href={linkTo(name)} />
        ),
    ],
  ];
  const { requests, cache_hit_rate, charge_usd } = session;
  const sum: AgentLine = { requests, cache_hit_rate, charge_usd };
  return (
    <Table
      name="Agents"
      columns={columns}
      rows={agents.length > 1 ? [...agents, sum] : agents}
      keyOf={({ name }) => name ?? "sum of all"}
      describe={({ name }) => (name === undefined ? { class: "sum" } : {})}
    />
  );
}

/** A miss, or all of them. */
type MissLine = Pick<Miss, "tokens" | "usd"> & Partial<Miss>;

const hrefOfMiss = (id: string): string => hrefOf(["requests", id], { period: "all" });

const MISS_COLUMNS: readonly Column<MissLine>[] = [
  [
    "Time",
    "",
    ({ id, time = "" }) =>
      id === undefined ? (
        "All together"
      ) : (
        <a href={hrefOfMiss(id)}>
          <Moment time={time} />
        </a>
      ),
  ],
  ["Cause", "text", ({ because }) => because?.replaceAll("_", " ")],
  ["Tokens", "number", ({ tokens }) => formatCount(tokens)],
  [
    "Cost",
    "number",
    ({ id, usd }) => {
      const text = usd === null ? "–" : formatUsd(usd, 4);
      return id === undefined ? text : <Amount text={text} href={hrefOfMiss(id)} />;
    },
  ],
];

function Misses({ misses }: { readonly misses: readonly Miss[] }) {
  const usd = misses.reduce((sum, miss) => addUsd(sum, parseUsd(miss.usd ?? "0")), ZERO_USD);
  const tokens = misses.reduce((sum, miss) => sum + miss.tokens, 0);
  const lines: readonly MissLine[] = misses.length > 1 ? [...misses, { tokens, usd: writeUsd(usd) }] : misses;
  return (
    <div>
      <h3>Prompts that should have been read from the cache, and were not</h3>
      <Table
        name="Cache misses"
        columns={MISS_COLUMNS}
        rows={lines}
        keyOf={({ id }) => id ?? "sum"}
        describe={({ id }) => (id === undefined ? { class: "sum" } : {})}
      />
    </div>
  );
}
