// One session: its requests over time, its agents, and what its prompts missed in the cache.

import type { AgentRow, Miss, RequestsReply, SessionReply } from "../../api.ts";
import { Copy, Dialog, Failure, Name, Table } from "../parts/basic.tsx";
import { ContextBars } from "../parts/context-bars.tsx";
import { formatCount, formatFull, formatMoment, formatRate, formatUsd } from "../parts/format.ts";
import { Timeline } from "../parts/timeline.tsx";
import { hrefOf } from "../state/route.ts";
import { askScoped, hrefScoped } from "../state/scope.ts";
import { useData } from "../state/use.ts";

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

function SessionBody({ data: { session, agents, rise, context } }: { readonly data: SessionReply }) {
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
      <Turns session={session.session} agents={agents.map(({ name }) => name)} />
      {context.length > 0 && (
        <div>
          <h3>What its prompts consisted of</h3>
          <ContextBars context={context} />
        </div>
      )}
      <Agents agents={agents} />
      {misses.length > 0 && <Misses misses={misses} />}
    </div>
  );
}

/** A longer session shows its last requests. */
const MAX_TURNS = 1000;

function Turns({ session, agents }: { readonly session: string; readonly agents: readonly string[] }) {
  const scope = { period: "all", filters: { session } };
  const { data, error, load } = useData<RequestsReply>(`requests?${askScoped(scope)}&most=${MAX_TURNS}`);
  if (error !== null) return <Failure text={error} retry={load} />;
  if (data === null) return <p class="quiet">Counting …</p>;
  return (
    <div>
      <Timeline turns={data.rows.toReversed()} agents={agents} />
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

function Agents({ agents }: { readonly agents: readonly AgentRow[] }) {
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
          <th scope="row" class={`name agent d${Math.min(depth, MAX_INDENT)}`} title={name}>
            {name === "" ? "main agent" : name}
            <span class="hidden">{depth > 1 && `, level ${depth}`}</span>
          </th>
          <Name text={model} more="more" />
          <td class="number">{formatCount(requests)}</td>
          <td class="number">{formatRate(rate)}</td>
          <td class="number">{formatUsd(charge, 4)}</td>
        </tr>
      ))}
    </Table>
  );
}

const MAX_INDENT = 6;

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
            <td class="number">{usd === null ? "–" : formatUsd(usd, 4)}</td>
          </tr>
        ))}
      </Table>
    </div>
  );
}
