// The reports of the ledger, which run in a thread (worker.ts).

import { z } from "zod";
import { reportCache } from "../../billing/reports/cache.ts";
import { reportServers } from "../../billing/reports/context.ts";
import { reportEvidence } from "../../billing/reports/evidence.ts";
import { reportOverview } from "../../billing/reports/overview.ts";
import { type Clock, readViewPeriod, toPeriod } from "../../billing/reports/period.ts";
import { describeRequest, findRequest } from "../../billing/reports/request.ts";
import { reportNames, reportRequests } from "../../billing/reports/requests.ts";
import { reportSession, reportSessions } from "../../billing/reports/sessions.ts";
import type { Scope } from "../../billing/reports/sums.ts";
import { FILTERS, MEASURES, ORDERS, STACKS } from "../../billing/reports/words.ts";
import { reportVersions } from "../../billing/reports/versions.ts";
import type { Table } from "../../billing/store/open.ts";
import { refuseUsage } from "../../lib/refusal.ts";

interface Report<Document> {
  readonly isPartial?: true;
  run(table: Table, given: Readonly<Record<string, unknown>>, clock: Clock): Document;
}

function define<Input, Document>(
  input: z.ZodType<Input>,
  run: (table: Table, input: Input, clock: Clock) => Document,
): Report<Document> {
  return {
    run: (table, given, clock) => {
      const only = FILTERS.flatMap((filter) => (filter in given ? [[filter, given[filter]]] : []));
      const { success, data, error } = input.safeParse({ ...given, only: Object.fromEntries(only) });
      if (success) return run(table, data, clock);
      const [{ path, message } = { path: [], message: "" }] = error.issues;
      return refuseUsage(`The report has no such ${path.join(".")}: ${message}.`);
    },
  };
}

const name = z.string().max(4096);
const view = z.object({
  period: z.string().max(60).default("7d"),
  only: z.partialRecord(z.enum(FILTERS), name),
});
/** One more row than the page shows. */
const most = z.coerce.number().int().positive().max(2001).default(100);
const one = z.object({ id: name.default("") });

function toScope({ period, only }: z.infer<typeof view>, clock: Clock): Scope {
  return { ...toPeriod(readViewPeriod(period, clock)), only };
}

function ofPeriod<Document>(report: (table: Table, scope: Scope, clock: Clock) => Document) {
  return define(view, (table, query, clock) => report(table, toScope(query, clock), clock));
}

const REPORTS = {
  overview: {
    ...define(
      view.extend({ by: z.enum(STACKS).default("model"), show: z.enum(MEASURES).default("cost") }),
      (table, query, clock) => ({ ...reportOverview(table, query, clock), read: table.read }),
    ),
    isPartial: true,
  },
  sessions: define(
    view.extend({ order: z.enum(ORDERS).default("newest"), most }),
    (table, { order, most: rows, ...query }, clock) =>
      reportSessions(table, { ...toScope(query, clock), order, most: rows }),
  ),
  session: define(one, (table, { id }) => ({ found: reportSession(table, { session: id }) })),
  requests: define(view.extend({ most }), (table, { most: rows, ...query }, clock) =>
    reportRequests(table, { ...toScope(query, clock), most: rows }),
  ),
  request: define(one, (table, { id }) => {
    const found = findRequest(table, id);
    return { found: found && describeRequest(found) };
  }),
  names: ofPeriod(reportNames),
  cache: ofPeriod((table, scope, { zone }) => reportCache(table, scope, zone)),
  evidence: ofPeriod((table, scope) => reportEvidence(table, scope)),
  versions: ofPeriod((table, _, clock) => ({ changes: reportVersions(table, clock) })),
  servers: ofPeriod(reportServers),
} satisfies Readonly<Record<string, Report<unknown>>>;

export function findReport(name: string): Report<object> {
  const found = Object.entries(REPORTS).find(([each]) => each === name);
  return found?.[1] ?? refuseUsage(`There is no report "${name}".`);
}

export type ReportName = keyof typeof REPORTS;
/** `as_of`: the ISO time of all sums. */
export type Document<Name extends ReportName> = ReturnType<(typeof REPORTS)[Name]["run"]> & {
  readonly as_of: string;
};
