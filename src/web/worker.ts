// The thread that reads the table of a running gateway's ledger, so that no stream waits for SQLite. reports.ts starts it
// and sends it questions.

import { adviseOn, describeCause } from "../billing/reports/causes.ts";
import { reportCache } from "../billing/reports/cache.ts";
import { type OverviewQuery, reportOverview } from "../billing/reports/overview.ts";
import { type Clock, readViewPeriod, toPeriod } from "../billing/reports/period.ts";
import { describeRequest, findRequest, type RequestDocument } from "../billing/reports/request.ts";
import { reportNames, reportRequests } from "../billing/reports/requests.ts";
import { describeRise, listTree } from "../billing/reports/session-words.ts";
import { type Order, reportSession, reportSessions } from "../billing/reports/sessions.ts";
import { type Filter, NO_TOTALS, type Scope } from "../billing/reports/sums.ts";
import { Table } from "../billing/store/open.ts";
import { getErrorMessage } from "../lib/errors.ts";
import { Refusal } from "../lib/refusal.ts";
import { escapeUnprintable } from "../lib/text/printable.ts";
import { createZone } from "../lib/text/zone.ts";
import type { MissesReply, SessionParts, SessionsReply } from "./api.ts";

/** So much is read before the next question is looked at: 0.1 s of CPU. */
const STEP_BYTES = 4 << 20;

interface View {
  readonly period: string;
  readonly only: Filter;
}

const scopeOf = ({ period, only }: View, clock: Clock): Scope => ({
  ...toPeriod(readViewPeriod(period, clock)),
  only,
});

/** By the name of a question. */
const ANSWERS = {
  overview: (table: Table, query: OverviewQuery, clock: Clock) => ({
    ...reportOverview(table, query, clock),
    read: table.read,
    as_of: clock.now.toISOString(),
  }),
  /** What `gateway ledger show --json` prints of a request; null: no line has this id. */
  explain: (table: Table, request: string): unknown => {
    const found = findRequest(table, request);
    return found === null ? null : escapeNames(describeRequest(found));
  },
  sessions: listSessions,
  session: showSession,
  requests: (table: Table, { most, ...view }: View & { readonly most: number }, clock: Clock) => ({
    ...reportRequests(table, { ...scopeOf(view, clock), most }),
    as_of: clock.now.toISOString(),
  }),
  names: (table: Table, view: View, clock: Clock) => reportNames(table, scopeOf(view, clock)),
  misses: listCauses,
  /** Brings the table up to date. */
  follow: () => null,
};

export type Answers = typeof ANSWERS;
export type ReportName = keyof Answers;

/** A name of others may have a line break, or turn the text after it. */
function escapeNames(document: RequestDocument): unknown {
  return JSON.parse(JSON.stringify(document), (_, value: unknown) =>
    typeof value === "string" ? escapeUnprintable(value) : value,
  );
}

function listSessions(
  table: Table,
  { order, most, ...view }: View & { readonly order: Order; readonly most: number },
  clock: Clock,
): SessionsReply {
  const { sessions, ...report } = reportSessions(table, { ...scopeOf(view, clock), order, most: most + 1 });
  return {
    sessions: sessions.slice(0, most),
    isMore: sessions.length > most,
    total: report.total,
    unnamed: report.no_session ?? NO_TOTALS,
    as_of: clock.now.toISOString(),
  };
}

function showSession(table: Table, id: string): SessionParts {
  const report = reportSession(table, { session: id });
  if (report === null) return { session: null, agents: [] };
  const { agents, misses, started: _, windows, windows_shared: isShared = false, ...session } = report;
  return {
    session: { ...session, agents: agents.length },
    agents: listTree(agents).map(({ name, row, branches }) => ({
      ...NO_TOTALS,
      ...row,
      name,
      depth: branches.length,
      model: row?.model ?? "",
      misses: misses
        .filter((miss) => (miss.agent ?? "") === name)
        .map(({ agent: __, missed: tokens, ...miss }) => ({ ...miss, tokens })),
    })),
    ...(windows !== undefined && { rise: describeRise({ windows, windows_shared: isShared }) }),
  };
}

function listCauses(table: Table, view: View, clock: Clock): MissesReply {
  const { causes, total } = reportCache(table, { ...scopeOf(view, clock), zone: clock.zone });
  return {
    causes: causes.map((cause) => ({
      cause: describeCause(cause),
      help: adviseOn(cause),
      misses: cause.misses,
      tokens: cause.missed_tokens,
      usd: cause.usd,
    })),
    misses: total.misses,
    usd: total.usd,
    as_of: clock.now.toISOString(),
  };
}

export interface Question {
  readonly id: number;
  readonly name: ReportName;
  readonly input: unknown;
  readonly ledgerPath: string;
  readonly timezone: string;
}

/** The one of the last question. A file is opened again for each; what is in memory stays. */
let table: Table | null = null;

function openTable(ledgerPath: string): Table {
  if (table?.isInMemory === true) table.advance();
  else {
    table?.[Symbol.dispose]();
    table = new Table(ledgerPath, { report: (note) => postMessage({ note }), most: STEP_BYTES });
  }
  return table;
}

async function answer({ name, input, ledgerPath, timezone }: Question): Promise<unknown> {
  // An overview says how much is read, and the page asks again for the rest.
  if (name !== "overview") while (openTable(ledgerPath).read < 1) await Bun.sleep(0);
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- console.ts has read the input of each by its schema
  const ask = ANSWERS[name] as (table: Table, input: unknown, clock: Clock) => unknown;
  return ask(openTable(ledgerPath), input, { zone: createZone(timezone), now: new Date() });
}

globalThis.addEventListener("message", ({ data }: MessageEvent<Question>) => {
  const { id } = data;
  void answer(data).then(
    (found) => postMessage({ id, answer: found }),
    (error: unknown) =>
      postMessage({
        id,
        error: getErrorMessage(error),
        ...(error instanceof Refusal && { isRefusal: true }),
      }),
  );
});
