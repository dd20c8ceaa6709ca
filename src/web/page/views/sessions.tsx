// What each session of an agent has spent, and the agents in one session.

import type { AgentRow, Miss, SessionReply, SessionRow, SessionsReply } from "../../api.ts";
import { type Order, ORDERS, PERIODS } from "../../api.ts";
import { Copy, Dialog, Empty, Failure, Name, Table } from "../parts/basic.tsx";
import {
  formatCount,
  formatFull,
  formatMoment,
  formatRate,
  formatShort,
  formatSpan,
  formatUsd,
  PERIOD_TITLES,
} from "../parts/format.ts";
import { go, hrefOf, type Route } from "../state/route.ts";
import { spaceOut, useData, useFresh } from "../state/use.ts";

const ORDER_TITLES: Readonly<Record<Order, string>> = {
  newest: "newest first",
  charge: "most expensive first",
};
const REFRESH_MS = 15_000;

export function SessionsView({ route }: { readonly route: Route }) {
  const period = PERIODS.find((each) => each === route.query.get("period")) ?? "7d";
  const order = ORDERS.find((each) => each === route.query.get("order")) ?? "newest";
  const { data, error, load, tookMs } = useData<SessionsReply>(`sessions?period=${period}&order=${order}`);
  useFresh(spaceOut(REFRESH_MS, tookMs), load);
  const [, session] = route.path;
  const show = (changed: { readonly period?: string; readonly order?: string }): void =>
    go(hrefOf(["sessions"], { period, order, ...changed }), "replace");
  return (
    <>
      <h1 class="hidden">Sessions</h1>
      {error !== null && <Failure text={error} retry={load} />}
      <section class="card">
        <header>
          <h2>Sessions</h2>
          <label class="inline">
            <select
              aria-label="Period"
              value={period}
              onChange={(event) => show({ period: event.currentTarget.value })}
            >
              {PERIODS.map((each) => (
                <option key={each} value={each}>
                  {PERIOD_TITLES[each].toLowerCase()}
                </option>
              ))}
            </select>{" "}
            <select
              aria-label="Order"
              value={order}
              onChange={(event) => show({ order: event.currentTarget.value })}
            >
              {ORDERS.map((each) => (
                <option key={each} value={each}>
                  {ORDER_TITLES[each]}
                </option>
              ))}
            </select>
          </label>
        </header>
        {data === null ? (
          error === null && <p class="loading">Reading the ledger …</p>
        ) : (
          <Sessions data={data} order={order} />
        )}
      </section>
      {session !== undefined && (
        <SessionPanel id={session} onClose={() => go(hrefOf(["sessions"], { period, order }), "replace")} />
      )}
    </>
  );
}

function Sessions({
  data: { sessions, more, period },
  order,
}: {
  readonly data: SessionsReply;
  readonly order: Order;
}) {
  if (sessions.length === 0)
    return (
      <Empty title="No session in this period.">
        <p>
          Agents such as Claude Code and Codex name theirs: <code>gateway run claude</code> starts one.
        </p>
      </Empty>
    );
  return (
    <>
      <Table
        name="Sessions"
        columns={[
          ["Last request"],
          ["Tool"],
          ["Label", "some"],
          ["Key", "some"],
          ["Lasted", "number some"],
          ["Requests", "number more"],
          ["Agents", "number some"],
          ["From cache", "number some"],
          ["Missed", "number some"],
          ["Charge", "number"],
        ]}
      >
        {sessions.map((row) => (
          <SessionLine
            key={row.session}
            row={row}
            href={hrefOf(["sessions", row.session], { period, order })}
          />
        ))}
      </Table>
      {more > 0 && (
        <p class="quiet">
          {formatCount(more)} more: <code>gateway sessions --all</code> shows every one.
        </p>
      )}
    </>
  );
}

function SessionLine({ row, href }: { readonly row: SessionRow; readonly href: string }) {
  const { since, until, tool, label, key, requests, agents, missed } = row;
  const end = Date.parse(until);
  return (
    <tr>
      <td>
        <a href={href}>
          <time title={formatFull(end)}>{formatMoment(end)}</time>
        </a>
      </td>
      <Name text={tool} />
      <Name text={label} more="some" />
      <Name text={key} more="some" />
      <td class="number some">{formatSpan(end - Date.parse(since))}</td>
      <td class="number more">{formatCount(requests)}</td>
      <td class="number some">{formatCount(agents)}</td>
      <td class="number some">{formatRate(row.cache_hit_rate)}</td>
      <td class="number some">{missed === 0 ? "–" : formatShort(missed)}</td>
      <td class="number">
        {row.paid_by_plan_usd === undefined ? (
          formatUsd(row.charge_usd, 4)
        ) : (
          <span title="Paid by a plan, not charged">({formatUsd(row.paid_by_plan_usd, 4)})</span>
        )}
      </td>
    </tr>
  );
}

function SessionPanel({ id, onClose }: { readonly id: string; readonly onClose: () => void }) {
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

function SessionBody({ data: { session, agents, rise } }: { readonly data: SessionReply }) {
  if (session === null) return <p class="quiet">The last thirty days have no such session.</p>;
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
      <Agents agents={agents} />
      {misses.length > 0 && <Misses misses={misses} />}
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
              <a href={hrefOf(["live", id])}>
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
