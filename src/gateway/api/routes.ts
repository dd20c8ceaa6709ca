// What a running gateway answers to its user: `GET reports/NAME` and `POST actions/NAME`, in JSON. Commands ask over the
// private socket (socket.ts), and the console's page (web/console.ts) behind its sign-in.

import { z } from "zod";
import { type LimitUse, listLimitUses, listSessionUses } from "../../billing/limits/alerts.ts";
import { getErrorMessage } from "../../lib/errors.ts";
import { Refusal } from "../../lib/refusal.ts";
import { reportFault } from "../observe/observer.ts";
import { ACTIONS } from "./actions.ts";
import { describeLimit, listKeys } from "./keys.ts";
import type { LimitRow, OverviewReply, SessionReply } from "./documents.ts";
import type { ReportName } from "./reports.ts";
import { type ApiParts, define, type Row } from "./row.ts";
import { buildState } from "./state.ts";
import { buildStatus } from "./status.ts";

const names = z.lazy(() => z.record(z.string(), z.string()));

/** What only a running gateway knows. */
const RUNNING: Readonly<Record<string, Row>> = {
  /** Everything, as one document. */
  state: define(names, (_, parts) => buildState(parts)),
  /** What a status line shows. */
  status: define(names, ({ session, key }, { gateway }) =>
    buildStatus(session ?? null, key ?? null, gateway),
  ),
  /** What `actions/add-channel` is given; null: nothing can be added. */
  "channel-choices": define(names, async (_, { setUp }) => ({ choices: (await setUp?.list()) ?? null })),
  /** What a run of `gateway run` has cost. */
  run: define(names, ({ id = "" }, { gateway }) => {
    gateway.finished.flush();
    return gateway.runs.find(id);
  }),
  keys: define(names, (_, parts) => listKeys(parts)),
  overview: define(names, async (query, parts) => {
    const { catalog, ledger, now } = parts.gateway;
    const uses = listLimitUses(catalog.keys.values(), ledger.sums, now());
    return {
      ...(await parts.thread.ask("overview", query)),
      limits: describeLimits(uses, parts),
    } satisfies OverviewReply;
  }),
  session: define(names, async (query, parts) => {
    const document = await parts.thread.ask("session", query);
    const { session, key: name } = document.found ?? {};
    const key = parts.gateway.catalog.keys.get(name ?? "");
    const { sums } = parts.gateway.ledger;
    const uses = key === undefined || session === undefined ? [] : listSessionUses(key, session, sums);
    return { ...document, limits: describeLimits(uses, parts) } satisfies SessionReply;
  }),
  ...Object.fromEntries(
    (
      ["sessions", "requests", "request", "names", "cache", "evidence", "versions"] satisfies ReportName[]
    ).map((name) => [name, define(names, (query, { thread }) => thread.ask(name, query))]),
  ),
};

const ROWS: ReadonlyMap<string, Row> = new Map([
  ...Object.entries(RUNNING).map(([name, row]) => [`GET reports/${name}`, row] as const),
  ...Object.entries(ACTIONS).map(([name, row]) => [`POST actions/${name}`, row] as const),
]);

function describeLimits(uses: readonly LimitUse[], { gateway }: ApiParts): LimitRow[] {
  return uses.map((use) => describeLimit(use, gateway.catalog.alerts.at));
}

export interface Call {
  readonly method: string;
  /** Without a slash at its beginning. */
  readonly path: string;
  /** The query, or the body. */
  readonly given: unknown;
  readonly isPage: boolean;
}

export interface Reply {
  readonly status: number;
  readonly document: unknown;
}

export async function answerCall(call: Call, parts: ApiParts): Promise<Reply> {
  const row = ROWS.get(`${call.method} ${call.path}`);
  if (row === undefined || (call.isPage && row.isPrivate))
    return refuse(404, "The gateway has no such address.");
  try {
    return { status: 200, document: await row.answer(call.given, parts) };
  } catch (error) {
    if (error instanceof Refusal) return refuse(error.exitStatus === 2 ? 400 : 409, error.message);
    reportFault(error, parts.gateway.observer);
    return refuse(500, getErrorMessage(error));
  }
}

function refuse(status: number, error: string): Reply {
  return { status, document: { error } };
}
