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
import { Charge, Copy, Dialog, Failure, Name, Table } from "../parts/basic.tsx";
import { ContextBars } from "../parts/context-bars.tsx";
import {
  formatCount,
  formatFull,
  formatMoment,
  formatRate,
  formatUsd,
  localize,
  MAIN_AGENT,
  nameLimit,
} from "../parts/format.ts";
import { toRow } from "../parts/request-cells.tsx";
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

function Agents({ agents, session }: { readonly agents: readonly AgentRow[]; readonly session: SessionRow }) {
  return (
    <Table
      name="Agents"
      columns={[
        ["Agent"],
        ["Model", "more"],
        ["Requests", "number"],
        ["From cache", "number"],
        ["Charge", "number"],
      ]}
    >
      {agents.map(({ name, depth, model, requests, cache_hit_rate: rate, charge_usd: charge }) => (
        <tr key={name}>
          <th
            scope="row"
            class="name"
            title={name}
            style={{ textIndent: `${16 * Math.min(depth, MAX_INDENT)}px` }}
          >
            <a href={hrefOfAgent(name, session)}>{name === "" ? MAIN_AGENT : name}</a>
            <span class="hidden">{depth > 1 && `, level ${depth}`}</span>
          </th>
          <Name text={model} more="more" />
          <td class="number">{formatCount(requests)}</td>
          <td class="number">{formatRate(rate)}</td>
          <Charge text={formatUsd(charge, 4)} href={hrefOfAgent(name, session)} />
        </tr>
      ))}
      {agents.length > 1 && (
        <tr class="sum">
          <th scope="row">All together</th>
          <td class="more" />
          <td class="number">{formatCount(session.requests)}</td>
          <td class="number">{formatRate(session.cache_hit_rate)}</td>
          <td class="number">{formatUsd(session.charge_usd, 4)}</td>
        </tr>
      )}
    </Table>
  );
}

const MAX_INDENT = 6;

function hrefOfAgent(agent: string, { session }: SessionRow): string {
  return hrefScoped(["requests"], { period: "all", filters: { session, agent } });
}

function Misses({ misses }: { readonly misses: readonly Miss[] }) {
  return (
    <div>
      <h3>Prompts that should have been read from the cache, and were not</h3>
      <Table name="Cache misses" columns={[["Time"], ["Cause"], ["Tokens", "number"], ["Cost", "number"]]}>
        {misses.map(({ time, id, because, tokens, usd }) => (
          <tr key={id}>
            <td>
              <a href={hrefOf(["requests", id], { period: "all" })}>
                <time title={formatFull(Date.parse(time))}>{formatMoment(Date.parse(time))}</time>
              </a>
            </td>
            <td class="text">{because.replaceAll("_", " ")}</td>
            <td class="number">{formatCount(tokens)}</td>
            <Charge
              text={usd === null ? "–" : formatUsd(usd, 4)}
              href={hrefOf(["requests", id], { period: "all" })}
            />
          </tr>
        ))}
        {misses.length > 1 && (
          <tr class="sum">
            <th scope="row">All together</th>
            <td />
            <td class="number">{formatCount(misses.reduce((sum, { tokens }) => sum + tokens, 0))}</td>
            <td class="number">
              {formatUsd(
                writeUsd(misses.reduce((sum, { usd }) => addUsd(sum, parseUsd(usd ?? "0")), ZERO_USD)),
                4,
              )}
            </td>
          </tr>
        )}
      </Table>
    </div>
  );
}
