// A session's drawer: requests over time, agents and cache misses.

import { addUsd, formatUsd as writeUsd, parseUsd, ZERO_USD } from "../../../lib/money.ts";
import type { SessionDocument } from "../../../billing/reports/sessions.ts";
import type { Totals } from "../../../billing/reports/sums.ts";
import { describeCause, describeRise, listTree } from "../../../billing/reports/words.ts";
import type { Document } from "../../../gateway/api/reports.ts";
import type { SessionReply } from "../../../gateway/api/documents.ts";
import { MAX_ROWS } from "../../api.ts";
import { Amount, Charge, Copy, Dialog, Moment, Waiting } from "../parts/basic.tsx";
import { chargeOf, countOf, formatCount, formatRate, MAIN_AGENT } from "../parts/format.ts";
import { SaveReport } from "../parts/save-report.tsx";
import { type Column, Table } from "../parts/table.tsx";
import { Timeline } from "../parts/timeline.tsx";
import { askScoped, hrefScoped } from "../state/scope.ts";
import { useData, useNow } from "../state/use.ts";
import { Limit } from "./overview-cards.tsx";

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
        {session.inferred && ". The tool names no session: these requests follow each other."}
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

/** An agent, or the sum of all. */
interface AgentLine {
  /** Empty: the main agent. */
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
/** A miss, or the sum of all. */
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
