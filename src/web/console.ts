// The server side of the console's page: who may come in, and what is at which address.
//
// A request passes the guard (guard.ts), which turns other web pages away. The shell and its assets have no data and
// need no sign-in. Everything else needs the cookie and the token of a signed-in page (sign-ins.ts).

import { pathOf, queryOf } from "../dialects/path.ts";
import { getErrorMessage } from "../lib/errors.ts";
import { z } from "zod";
import { listLimitUses, listSessionUses } from "../billing/limits/alerts.ts";
import type { Console, ConsoleParts } from "../gateway/control/console.ts";
import { ActionRefused, actOnChannel } from "../gateway/control/channel-actions.ts";
import type { UnroutedCall } from "../gateway/intake/call.ts";
import { isLoopback } from "../config/proxy.ts";
import { describeBaseUrl } from "../gateway/intake/own-host.ts";
import { reportFault } from "../gateway/observe/observer.ts";
import { BodyTooLarge, ClientGone, type Exchange } from "../lib/http/exchange.ts";
import type { Field } from "../lib/http/fields.ts";
import { parseJson } from "../lib/json/json.ts";
import { Refusal, refuseUsage } from "../lib/refusal.ts";
import {
  DEFAULT_PERIOD,
  FILTERS,
  MAX_ROWS,
  MEASURES,
  ORDERS,
  type OverviewReply,
  type SessionReply,
  ROWS,
  STACKS,
  TOKEN_HEADER,
} from "./api.ts";
import { NOT_CACHED, readCookies, refuseForeign, SAFE_FIELDS } from "./guard.ts";
import { createKeyPages, describeLimit, type Keys } from "./keys.ts";
import { createLive, type Live } from "./live.ts";
import { Reports } from "./reports.ts";
import { type CodeFault, createSignIns, SIGN_IN_SECONDS, type SignIns } from "./sign-ins.ts";

const API = "/console/api/";
const MAX_BODY_BYTES = 64 * 1024;

interface Inside extends ConsoleParts {
  readonly signIns: SignIns;
  readonly live: Live;
  readonly reports: Reports;
  readonly keys: Keys;
  /** Cookies belong to a host, not to a port: two gateways must not share one. */
  readonly cookie: () => string;
}

/** `command`: how the user starts this program, for lines to copy. */
export function createConsole(parts: ConsoleParts, command: string): Console {
  const { gateway, port } = parts;
  const { console: where, listen } = gateway.catalog;
  const inside: Inside = {
    ...parts,
    signIns: createSignIns(
      gateway.now,
      parts.configPath === null ? null : `${gateway.catalog.ledger.path}.sign-ins.json`,
    ),
    live: createLive(parts),
    reports: new Reports(
      () => ({
        ledgerPath: gateway.catalog.ledger.path,
        timezone: gateway.catalog.zone.name,
      }),
      (text) => gateway.observer.notice("warning", text),
    ),
    keys: createKeyPages(parts, command),
    cookie: () => `gateway_console_${port()}`,
  };
  const isServed = where === "always" || (where === "loopback" && isLoopback(listen.host));
  return {
    observer: { ...inside.live.observer, streamOpened: () => {}, streamClosed: () => {} },
    isServed,
    isSignedIn: (exchange) => isSignedIn(exchange, inside),
    answer: async (call) => {
      if (isServed) await answer(call, inside);
      else refuse(call.exchange, 404, NOT_SERVED);
    },
    createLink: () => {
      if (!isServed) throw new Refusal(NOT_SERVED, 1);
      // Behind the #: a browser sends that part to nobody, and the page removes it at once.
      return `${describeBaseUrl(listen.host, port())}/console#code=${inside.signIns.createCode()}`;
    },
    close: () => {
      inside.live.close();
      inside.reports.close();
    },
  };
}

const NOT_SERVED =
  "The console's page is not served here: the gateway does not listen on a loopback address, or the config says `console: never`. `console: always` serves it on any address.";

async function answer(call: UnroutedCall, inside: Inside): Promise<void> {
  const { exchange } = call;
  const path = pathOf(exchange.target);
  const isApi = path.startsWith(API);
  const isAsset = path.startsWith("/console/assets/");
  const foreign = refuseForeign(exchange, inside.gateway.catalog, !isApi && !isAsset);
  if (foreign !== null) refuse(exchange, 403, foreign);
  else if (isApi) await answerApi(exchange, path.slice(API.length), inside);
  else if (exchange.method !== "GET" && exchange.method !== "HEAD")
    refuse(exchange, 405, "The page accepts GET only.");
  else {
    // The bundle is large: a gateway whose page nobody opens does not load it.
    const { answerAsset, answerShell } = await import("./assets.ts");
    if (!isAsset) answerShell(exchange);
    else if (!answerAsset(exchange, path)) refuse(exchange, 404, "The page has no such file.");
  }
}

/** The method and the name of a route. */
type Handler = (exchange: Exchange, inside: Inside) => Promise<void> | void;

/** What the table says of what the address asks for. */
function answerBy(name: "sessions" | "requests" | "names" | "misses"): Handler {
  return async (exchange, { reports }) =>
    reply(exchange, 200, await reports.ask(name, readScoped(useSchemas()[name], exchange)));
}

const ROUTES: ReadonlyMap<string, Handler> = new Map<string, Handler>([
  ["POST sign-in", signIn],
  ["POST sign-out", signOut],
  ["GET live", openLive],
  ["GET overview", answerOverview],
  ["GET request", answerRequest],
  ["GET sessions", answerBy("sessions")],
  ["GET requests", answerBy("requests")],
  ["GET names", answerBy("names")],
  ["GET misses", answerBy("misses")],
  ["GET session", answerSession],
  ["GET keys", (exchange, { keys }) => reply(exchange, 200, keys.list())],
  [
    "POST keys/new",
    async (exchange, { keys }) => reply(exchange, 200, await keys.create(await readBody(exchange))),
  ],
  [
    "POST keys/change",
    async (exchange, { keys }) => reply(exchange, 200, await keys.change(await readBody(exchange))),
  ],
  ["POST channels", actOnOne],
]);

async function answerApi(exchange: Exchange, name: string, inside: Inside): Promise<void> {
  const route = `${exchange.method} ${name}`;
  const handler = ROUTES.get(route);
  try {
    if (route !== "POST sign-in" && !isSignedIn(exchange, inside))
      refuse(exchange, 401, "You are not signed in. `gateway open` opens a page that is.");
    else if (handler === undefined) refuse(exchange, 404, "The console has no such address.");
    else await handler(exchange, inside);
  } catch (error) {
    if (error instanceof ClientGone) return;
    const status = statusOf(error);
    if (status === 500) reportFault(error, inside.gateway.observer);
    if (!exchange.begun) refuse(exchange, status, getErrorMessage(error));
  }
}

function statusOf(error: unknown): number {
  if (error instanceof ActionRefused) return error.status;
  if (error instanceof Refusal) return error.exitStatus === 2 ? 400 : 409;
  if (error instanceof BodyTooLarge) return 413;
  return 500;
}

function isSignedIn(exchange: Exchange, { signIns, cookie }: Inside): boolean {
  return signIns.has(readCookies(exchange, cookie()), exchange.field(TOKEN_HEADER));
}

function openLive(exchange: Exchange, { live, signIns, cookie }: Inside): void {
  const [cookies, token] = [readCookies(exchange, cookie()), exchange.field(TOKEN_HEADER)];
  live.open(exchange, () => signIns.has(cookies, token));
}

const FAULTS: Readonly<Record<CodeFault, string>> = {
  unknown: "This link is not valid. `gateway open` makes a new one.",
  expired: "This link was valid for a minute only. `gateway open` makes a new one.",
  used: "This link has been used already. The browser that used it is signed out now. `gateway open` makes a new link.",
};

const signInSchema = z.lazy(() => z.strictObject({ code: z.string().max(200) }));

async function signIn(exchange: Exchange, { signIns, cookie, gateway }: Inside): Promise<void> {
  const body = signInSchema.safeParse(await readBody(exchange));
  const result = body.success ? signIns.signIn(body.data.code) : "unknown";
  if (typeof result === "string") {
    if (result === "used")
      gateway.observer.notice(
        "warning",
        "the sign-in link of the console was used twice: both are signed out",
      );
    refuse(exchange, 403, FAULTS[result]);
    return;
  }
  const attributes = `Path=/; HttpOnly; SameSite=Strict; Max-Age=${SIGN_IN_SECONDS}`;
  const field: Field = ["set-cookie", `${cookie()}=${result.cookie}; ${attributes}`];
  reply(exchange, 200, { token: result.token }, [field]);
}

function signOut(exchange: Exchange, { signIns, cookie }: Inside): void {
  signIns.signOut(readCookies(exchange, cookie()));
  const field: Field = ["set-cookie", `${cookie()}=; Path=/; HttpOnly; SameSite=Strict; Max-Age=0`];
  reply(exchange, 200, {}, [field]);
}

/** A name that a client has chosen may be long. */
const MAX_NAME = 4096;

const scopeShape = () => ({
  period: z.string().max(60).default(DEFAULT_PERIOD),
  only: z.partialRecord(z.enum(FILTERS), z.string().max(MAX_NAME)),
});
const readMost = () => z.coerce.number().int().positive().max(MAX_ROWS).default(ROWS);
/** Made when the first view asks: each schema takes part of a start. */
const makeSchemas = () => ({
  overview: z.object({
    ...scopeShape(),
    by: z.enum(STACKS).default("model"),
    show: z.enum(MEASURES).default("cost"),
  }),
  sessions: z.object({
    ...scopeShape(),
    order: z.enum(ORDERS).default("newest"),
    most: readMost(),
  }),
  requests: z.object({
    ...scopeShape(),
    most: readMost(),
  }),
  names: z.object(scopeShape()),
  misses: z.object(scopeShape()),
});
let schemas: ReturnType<typeof makeSchemas> | null = null;
const useSchemas = () => (schemas ??= makeSchemas());

/** What the address of a view asks for. Each filter has the name of what it filters by. */
function readScoped<T>(schema: z.ZodType<T>, exchange: Exchange): T {
  const query = readQuery(exchange);
  const only = FILTERS.flatMap((filter) => (query.has(filter) ? [[filter, query.get(filter)]] : []));
  const given = { ...Object.fromEntries(query), only: Object.fromEntries(only) };
  const parsed = schema.safeParse(given);
  if (parsed.success) return parsed.data;
  const [{ path, message } = { path: [], message: "" }] = parsed.error.issues;
  return refuseUsage(
    `The address asks for something that this page does not have: ${path.join(".")}: ${message}.`,
  );
}

async function answerOverview(exchange: Exchange, { reports, gateway }: Inside): Promise<void> {
  const { catalog, ledger, now } = gateway;
  const uses = listLimitUses(catalog.keys.values(), ledger, now());
  const limits = uses.map((use) => describeLimit(use, catalog.alerts.at));
  const overview = await reports.ask("overview", readScoped(useSchemas().overview, exchange));
  reply(exchange, 200, { ...overview, limits } satisfies OverviewReply);
}

async function answerSession(exchange: Exchange, { reports, gateway }: Inside): Promise<void> {
  const parts = await reports.ask("session", readQuery(exchange).get("id") ?? "");
  const { catalog, ledger } = gateway;
  const { session, key: name } = parts.session ?? {};
  const key = catalog.keys.get(name ?? "");
  const uses = key === undefined || session === undefined ? [] : listSessionUses(key, session, ledger);
  const limits = uses.map((use) => describeLimit(use, catalog.alerts.at));
  reply(exchange, 200, { ...parts, limits } satisfies SessionReply);
}

async function answerRequest(exchange: Exchange, { reports }: Inside): Promise<void> {
  const id = readQuery(exchange).get("id") ?? "";
  reply(exchange, 200, { found: await reports.ask("explain", id) });
}

const actionSchema = z.lazy(() =>
  z.strictObject({ name: z.string(), action: z.enum(["disable", "enable", "probe"]) }),
);

async function actOnOne(exchange: Exchange, { gateway }: Inside): Promise<void> {
  const body = actionSchema.safeParse(await readBody(exchange));
  if (!body.success) {
    refuse(exchange, 400, "A channel can be disabled, enabled and probed.");
    return;
  }
  reply(exchange, 200, await actOnChannel(body.data.name, body.data.action, gateway));
}

function readQuery({ target }: Exchange): URLSearchParams {
  return new URLSearchParams(queryOf(target));
}

/** A form of another site cannot send this type without a preflight, which gets no permission. */
async function readBody(exchange: Exchange): Promise<unknown> {
  if (exchange.field("content-type") !== "application/json")
    throw new Refusal("The page sends JSON only.", 2);
  return parseJson(Buffer.from(await exchange.readBody(MAX_BODY_BYTES)).toString());
}

const JSON_TYPE: Field = ["content-type", "application/json"];

function reply(exchange: Exchange, status: number, body: unknown, more: readonly Field[] = []): void {
  exchange.answer(status, [JSON_TYPE, NOT_CACHED, ...SAFE_FIELDS, ...more], JSON.stringify(body));
}

function refuse(exchange: Exchange, status: number, error: string): void {
  reply(exchange, status, { error });
}
