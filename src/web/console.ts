// Serves the console. Everybody gets the page without data, and may sign in. The data
// need a cookie and a token (sign-ins.ts).

import { pathOf, queryOf } from "../dialects/path.ts";
import { z } from "zod";
import { answerCall } from "../gateway/api/routes.ts";
import type { ApiParts } from "../gateway/api/parts.ts";
import type { UnroutedCall } from "../gateway/intake/call.ts";
import { isLoopback } from "../config/proxy.ts";
import { describeBaseUrl } from "../gateway/intake/own-host.ts";
import type { Console } from "../gateway/api/own-pages.ts";
import { BodyTooLarge, ClientGone, type Exchange } from "../lib/http/exchange.ts";
import type { Field } from "../lib/http/fields.ts";
import { parseJson } from "../lib/json/json.ts";
import { Refusal, refuseUsage } from "../lib/refusal.ts";
import { TOKEN_HEADER } from "./api.ts";
import { NOT_CACHED, readCookies, refuseForeign, SAFE_FIELDS } from "./guard.ts";
import { createLive } from "./live.ts";
import { type CodeFault, createSignIns, SIGN_IN_SECONDS } from "./sign-ins.ts";

const API = "/console/api/";
const MAX_BODY_BYTES = 64 * 1024;

interface Inside extends ApiParts {
  readonly signIns: ReturnType<typeof createSignIns>;
  readonly live: ReturnType<typeof createLive>;
  /** Differs by gateway, because a cookie belongs to a host and not a port. */
  readonly cookie: () => string;
}

/** `command` starts this program: lines to copy on the page begin with it. */
export function createConsole(parts: ApiParts, command: string): Console {
  const { gateway, port } = parts;
  const { console: where, listen } = gateway.catalog;
  const inside: Inside = {
    ...parts,
    signIns: createSignIns(
      gateway.now,
      parts.configPath === null ? null : `${gateway.catalog.ledger.path}.sign-ins.json`,
    ),
    live: createLive(parts, command),
    cookie: () => `gateway_console_${port()}`,
  };
  parts.thread.keepCurrent();
  const isServed = where === "always" || (where === "loopback" && isLoopback(listen.host));
  return {
    listener: inside.live.listener,
    isServed,
    isSignedIn: (exchange) => isSignedIn(exchange, inside),
    answer: async (call) => {
      if (isServed) await answer(call, inside);
      else refuse(call.exchange, 404, NOT_SERVED);
    },
    createLink: () => {
      if (!isServed) throw new Refusal(NOT_SERVED, 1);
      // Browsers do not send what follows the #, and the page removes it at once.
      return `${describeBaseUrl(listen.host, port())}/console#code=${inside.signIns.createCode()}`;
    },
    close: () => inside.live.close(),
  };
}

const NOT_SERVED =
  "The page is served on loopback only, unless the config says `console: always`. " +
  "With `console: never` it is not served.";

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
    // The bundle is large: it is loaded when somebody opens the page.
    const { answerAsset, answerShell } = await import("./assets.ts");
    if (!isAsset) answerShell(exchange);
    else if (!answerAsset(exchange, path)) refuse(exchange, 404, "The page has no such file.");
  }
}

async function answerApi(exchange: Exchange, path: string, inside: Inside): Promise<void> {
  const { method } = exchange;
  try {
    if (`${method} ${path}` === "POST sign-in") return await signIn(exchange, inside);
    if (!isSignedIn(exchange, inside))
      return refuse(exchange, 401, "You are not signed in. `gateway open` signs you in.");
    if (`${method} ${path}` === "POST sign-out") return signOut(exchange, inside);
    if (`${method} ${path}` === "GET live")
      return inside.live.open(exchange, () => isSignedIn(exchange, inside));
    const query = new URLSearchParams(queryOf(exchange.target));
    const given = method === "GET" ? Object.fromEntries(query) : await readBody(exchange);
    const { status, document } = await answerCall({ method, path, given, isPage: true }, inside);
    reply(exchange, status, document);
  } catch (error) {
    if (error instanceof ClientGone) return;
    if (error instanceof BodyTooLarge) return refuse(exchange, 413, error.message);
    if (error instanceof Refusal) return refuse(exchange, 400, error.message);
    throw error;
  }
}

function isSignedIn(exchange: Exchange, { signIns, cookie }: Inside): boolean {
  return signIns.has(readCookies(exchange, cookie()), exchange.field(TOKEN_HEADER));
}

const FAULTS: Readonly<Record<CodeFault, string>> = {
  unknown: "This link is not valid. `gateway open` makes a new one.",
  expired: "This link was valid for a minute only. `gateway open` makes a new one.",
  used: "The browser that used this link first is signed out now. `gateway open` makes a new one.",
};

const signInSchema = z.lazy(() => z.strictObject({ code: z.string().max(200) }));

async function signIn(exchange: Exchange, { signIns, cookie, gateway }: Inside): Promise<void> {
  const body = signInSchema.safeParse(await readBody(exchange));
  const result = body.success ? signIns.signIn(body.data.code) : "unknown";
  if (typeof result === "string") {
    if (result === "used")
      gateway.observer.notice(
        "warning",
        "a sign-in link of the console was used twice: the browser that used it first is signed out",
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

/** Forms of other sites cannot send JSON.
 *  The preflight of their scripts is refused. */
async function readBody(exchange: Exchange): Promise<unknown> {
  if (exchange.field("content-type") !== "application/json") return refuseUsage("The page sends JSON only.");
  return parseJson(Buffer.from(await exchange.readBody(MAX_BODY_BYTES)).toString());
}

const JSON_TYPE: Field = ["content-type", "application/json"];

function reply(exchange: Exchange, status: number, body: unknown, more: readonly Field[] = []): void {
  exchange.answer(status, [JSON_TYPE, NOT_CACHED, ...SAFE_FIELDS, ...more], JSON.stringify(body));
}

function refuse(exchange: Exchange, status: number, error: string): void {
  reply(exchange, status, { error });
}
