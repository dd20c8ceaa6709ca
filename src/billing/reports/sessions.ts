// The spending of sessions, and one session with its agents.

import { getList, parseJson } from "../../lib/json/json.ts";
import { readRises } from "../ledger/shares.ts";
import type { Table } from "../store/open.ts";
import { listRequests } from "./requests.ts";
import { ALL, orderUsd, type Scope, sumRequests, type SumRow, type SumsQuery, toIso } from "./sums.ts";
import { listTree, type Order } from "./words.ts";

export function reportSessions(
  table: Table,
  { order = "newest", most = 1e9, ...scope }: Scope & { readonly order?: Order; readonly most?: number },
) {
  const { rows, total } = sumSessions(table, { ...scope, order: `${FIRST[order]} ${NEWEST}` });
  const named = rows.filter(({ names: [session] }) => session !== "");
  const wanted = order === "missed" ? named.filter((row) => Number(row.sums["missed"]) > 0) : named;
  return {
    sessions: wanted.slice(0, most).map(describeOne),
    ...(wanted.length > most && { more: wanted.length - most }),
    no_session: rows.find(({ names }) => names[0] === "")?.totals ?? null,
    total: total.totals,
    unreadable: table.unreadable,
  };
}

/** MAX compares the times, and so finds the facts of the last request. */
const LAST = "MAX(printf('%015d', last) || json_array(key, tool, label, inferred))";

const NEWEST = "v1 DESC, n0";
const FIRST: Readonly<Record<Order, string>> = {
  newest: "",
  charge: `${orderUsd("charged", "charge")},`,
  missed: "missed DESC,",
};

function sumSessions(table: Table, query: Scope & Pick<SumsQuery, "where" | "order">) {
  return sumRequests(table, {
    order: NEWEST,
    ...query,
    by: ["session"],
    values: ["MIN(first)", "MAX(last)", "COUNT(DISTINCT COALESCE(agent, ''))", LAST],
    sums: { missed: "SUM(missed_tokens)", charged: "SUM(charge)" },
  });
}

function describeOne(row: SumRow) {
  const { names, values, totals } = row;
  const [key, tool, label, inferred] = getList(parseJson(String(values[3]).slice(15)));
  return {
    session: names[0] ?? "",
    inferred: inferred === 1,
    tool: textOrNull(tool),
    label: textOrNull(label),
    key: textOrNull(key) ?? "",
    since: toIso(values[0]),
    until: toIso(values[1]),
    agents: Number(values[2]),
    missed: Number(row.sums["missed"]),
    ...totals,
  };
}

export type SessionRow = Readonly<ReturnType<typeof describeOne>>;

function textOrNull(value: unknown): string | null {
  return typeof value === "string" ? value : null;
}

export function reportSession(
  table: Table,
  { session, hasTurns = false }: { readonly session: string; readonly hasTurns?: boolean },
) {
  const scope = { ...ALL, only: { session } };
  const [found] = session === "" ? [] : sumSessions(table, scope).rows;
  return found === undefined ? null : describeSession(table, describeOne(found), hasTurns);
}

function describeSession(table: Table, own: SessionRow, hasTurns: boolean) {
  const { session } = own;
  const { rows } = sumRequests(table, {
    ...ALL,
    only: { session },
    by: ["agent"],
    // SQLite takes bare columns from the row of MAX, the last request.
    values: ["parent", "model", "MAX(last_line)", "SUM(misses)"],
    byWho: { misses: "COUNT(cause)" },
  });
  const agents = rows.map(({ names: [agent = ""], values: [parent, model, , misses], totals }) => {
    const place = { agent: agent || null, parent: textOrNull(parent), model: textOrNull(model) ?? "" };
    return { ...place, ...totals, cache_misses: Number(misses) };
  });
  const rises = own.paid_by_plan_usd === undefined ? [] : Object.entries(readRises(table, session));
  const list = (where: string) => listRequests(table, `session = $session ${where}`, { $session: session });
  return {
    ...own,
    ...(rises.length > 0 && { windows: Object.fromEntries(rises.map(([name, { rise }]) => [name, rise])) }),
    agents: listTree(agents).flatMap(({ row }) => row ?? []),
    misses: list("AND cause IS NOT NULL ORDER BY at, line").flatMap(({ time, id, agent, missed }) => {
      if (missed === undefined) return [];
      const { tokens, usd, because } = missed;
      return [{ time, id, agent: agent || null, missed: tokens, usd, because }];
    }),
    started: listStarted(table, session),
    ...(hasTurns && {
      turns: list("ORDER BY line").map(
        ({ time, id, agent, model, input, cached, output, charge_usd, basis }) => {
          const amounts = { input, cached, output, charge_usd, basis };
          return { time, id, agent: agent || null, model, ...amounts };
        },
      ),
    }),
  };
}

export type SessionDocument = Readonly<ReturnType<typeof describeSession>>;

/** opencode's agents have sessions of their own. */
function listStarted(table: Table, session: string) {
  const where = {
    sql: "session IN (SELECT own.session FROM names AS own WHERE own.parent = $parent AND own.agent IS NULL)",
    values: { $parent: session },
  };
  return sumSessions(table, { ...ALL, where }).rows.map(describeOne);
}
