// The vendors' own hosts, as tools and the gateway reach them: a proxy on loopback that ends their TLS, notes each request,
// and has the simulated model answer it. Other hosts cannot be reached through it.

import { writeFileSync } from "node:fs";
import { decodeBody } from "../../../src/lib/codings.ts";
import type { Exchange } from "../../../src/lib/http/exchange.ts";
import type { Field } from "../../../src/lib/http/fields.ts";
import { readEvents } from "../raw.ts";
import { type DemoUpstream, startDemoUpstream } from "./demo-upstream.ts";
import { openTlsHosts } from "./tls-hosts.ts";

/** The host of a page that tools can fetch. */
export const PAGE_HOST = "pages.example";
const HOSTS = [
  "api.anthropic.com",
  "api.openai.com",
  "chatgpt.com",
  "generativelanguage.googleapis.com",
  PAGE_HOST,
];

/** The account of the login that Codex has in tests. */
export const CHATGPT_ACCOUNT = "0f9e8d7c-6b5a-4321-8fed-cba987654321";
const CHATGPT_ROUTE = { workspace_backend_origin: "https://chatgpt.com", account_routing_override: "us" };
const CHATGPT_ACCOUNTS = {
  accounts: [{ id: CHATGPT_ACCOUNT, plan_type: "plus", structure: "personal", ...CHATGPT_ROUTE }],
  account_ordering: [CHATGPT_ACCOUNT],
  default_account_id: CHATGPT_ACCOUNT,
};

/** A request as it arrived at a vendor. */
export interface Arrived {
  readonly host: string;
  readonly method: string;
  readonly target: string;
  readonly fields: readonly Field[];
  /** The body without its content coding. */
  readonly body: string;
}

export interface Vendor {
  /** The address of the proxy. */
  readonly url: string;
  /** The file of the authority that signs the hosts' certificates. */
  readonly authority: string;
  /** A message of a WebSocket has the method MESSAGE. */
  readonly arrived: readonly Arrived[];
  /** `sockets`: whether the vendor accepts WebSockets. `haiku`: the newest small model in its list. */
  readonly settings: { sockets: boolean; haiku: string };
  stop(): void;
}

/** Header fields that the simulated model does not get: they belong to the connection, or it does not need them. */
const OF_HOP = new Set(["accept-encoding", "connection", "content-encoding", "content-length", "host"]);
const MAX_BYTES = 64 << 20;

/** `authority`: the path at which the authority's certificate is written. */
export async function startVendor(
  authority: string,
  model: Pick<DemoUpstream, "url" | "stop"> = startDemoUpstream({ records: false }),
): Promise<Vendor> {
  const arrived: Arrived[] = [];
  const settings = { sockets: false, haiku: "haiku-4-5" };
  const answer = async (exchange: Exchange): Promise<void> => {
    const body = await readText(exchange);
    const { method, target, fields } = exchange;
    const host = exchange.field("host") ?? "";
    arrived.push({ host, method, target, fields: [...fields], body });
    if (exchange.field("upgrade") !== undefined) {
      // Clients that get this refusal send their requests over HTTP.
      if (!settings.sockets) return exchange.answer(426, [], "");
      return serveSocket(exchange, (text) => {
        arrived.push({ host, method: "MESSAGE", target, fields: [], body: text });
        return askModel(model.url + target, text);
      });
    }
    const path =
      host === "chatgpt.com" ? target.replace(/^\/backend-api\/codex(?=\/responses$)/, "/v1") : target;
    if (target === "/backend-api/wham/accounts/check")
      return exchange.answer(200, [["content-type", "application/json"]], JSON.stringify(CHATGPT_ACCOUNTS));
    if (host === "chatgpt.com" && path === target) return exchange.answer(404, [], "");
    const headers = Object.fromEntries([...fields].filter(([name]) => !OF_HOP.has(name)));
    const response = await fetch(model.url + path, { method, headers, ...(method === "POST" && { body }) });
    const type = response.headers.get("content-type") ?? "application/json";
    exchange.begin(response.status, [["content-type", type]]);
    for await (const chunk of response.body ?? []) void exchange.write(renew(target, chunk, settings.haiku));
    exchange.end();
  };
  const onExchange = (exchange: Exchange): void => {
    if (exchange.field("host") === PAGE_HOST)
      return exchange.answer(200, [["content-type", "text/html"]], "<p>A page.</p>");
    void answer(exchange).catch(() => exchange.reset());
  };
  const hosts = await openTlsHosts(HOSTS, onExchange);
  writeFileSync(authority, hosts.authority);
  return {
    url: hosts.url,
    authority,
    arrived,
    settings,
    stop: () => {
      hosts.close();
      model.stop();
    },
  };
}

/** Replaces the small model in a list of models by a newer one, `haiku`. */
function renew(target: string, list: Uint8Array, haiku: string): Uint8Array {
  const isList = target.startsWith("/v1/models");
  return isList ? Buffer.from(Buffer.from(list).toString().replaceAll("haiku-4-5", haiku)) : list;
}

/** Reads the request's body without its content coding. */
async function readText(exchange: Exchange): Promise<string> {
  const sent = await exchange.readBody(MAX_BYTES);
  const coding = exchange.field("content-encoding");
  return Buffer.from(coding === undefined ? sent : await decodeBody(sent, coding, MAX_BYTES)).toString();
}

/** Answers each message with what `answer` makes of it. */
function serveSocket(exchange: Exchange, answer: (text: string) => Promise<string[]>): void {
  exchange.acceptWebSocket([], (peer) => ({
    message: ({ bytes }) => {
      void answer(Buffer.from(bytes).toString()).then((events) => {
        for (const event of events) void peer.send({ kind: "text", bytes: Buffer.from(event) });
      });
    },
    drained() {},
    closed() {},
    stopping() {},
  }));
}

/** Sends the message of a WebSocket as a request over HTTP. Returns the events of the response. */
async function askModel(url: string, text: string): Promise<string[]> {
  const { type: _, ...body } = JSON.parse(text);
  const headers = { "content-type": "application/json" };
  const response = await fetch(url, {
    method: "POST",
    headers,
    body: JSON.stringify({ ...body, stream: true }),
  });
  return readEvents(await response.text());
}
