// The vendors' own hosts, as tools and the gateway reach them: a proxy on loopback that ends their TLS, notes each request,
// and has the simulated model answer it. Other hosts cannot be reached through it.

import { writeFileSync } from "node:fs";
import { makeIdentity } from "../../../src/cli/tools/transparent/authority.ts";
import { openProxy } from "../../../src/cli/tools/transparent/proxy.ts";
import { listen } from "../../../src/lib/http1/server/server.ts";
import { decodeBody } from "../../../src/lib/http1/encoding.ts";
import type { Exchange, Field } from "../../../src/lib/http1/types.ts";
import { startDemoUpstream } from "./demo-upstream.ts";

const HOSTS = ["api.anthropic.com", "api.openai.com", "chatgpt.com", "generativelanguage.googleapis.com"];

/** A request as it arrived at a vendor. */
export interface Arrived {
  readonly host: string;
  readonly method: string;
  readonly target: string;
  readonly fields: readonly Field[];
  /** Without its content coding. */
  readonly body: string;
}

export interface Vendor {
  /** The address of the proxy. */
  readonly url: string;
  /** The same vendors without TLS, for tools whose users name the address in any case. */
  readonly plainUrl: string;
  /** The file of the authority that signs the hosts' certificates. */
  readonly authority: string;
  readonly arrived: readonly Arrived[];
  stop(): void;
}

/** Of the connection, and what the model does not need. */
const OF_HOP = new Set(["accept-encoding", "connection", "content-encoding", "content-length", "host"]);
const MAX_BYTES = 64 << 20;

/** `authority`: where its certificate is written. */
export function startVendor(authority: string): Vendor {
  const model = startDemoUpstream({ records: false });
  const identity = makeIdentity(HOSTS, Date.now());
  writeFileSync(authority, identity.authority);
  const arrived: Arrived[] = [];
  const answer = async (exchange: Exchange): Promise<void> => {
    const sent = await exchange.readBody(MAX_BYTES);
    const coding = exchange.field("content-encoding");
    const body = Buffer.from(
      coding === undefined ? sent : await decodeBody(sent, coding, MAX_BYTES),
    ).toString();
    const { method, target, fields } = exchange;
    const host = exchange.field("host") ?? "";
    arrived.push({ host, method, target, fields: [...fields], body });
    // Clients send what they have over HTTP then.
    if (exchange.field("upgrade") !== undefined) return exchange.answer(426, [], "");
    if (host === "chatgpt.com") return exchange.answer(404, [], "");
    const headers = Object.fromEntries([...fields].filter(([name]) => !OF_HOP.has(name)));
    const response = await fetch(model.url + target, { method, headers, ...(method === "POST" && { body }) });
    const type = response.headers.get("content-type") ?? "application/json";
    exchange.begin(response.status, [["content-type", type]]);
    for await (const chunk of response.body ?? []) exchange.write(Buffer.from(chunk));
    exchange.end();
  };
  const onExchange = (exchange: Exchange): void => void answer(exchange).catch(() => exchange.reset());
  const proxy = openProxy({ hosts: HOSTS, identity, env: {}, onExchange });
  const plain = listen({ hostname: "127.0.0.1", port: 0, onExchange });
  return {
    url: proxy.url,
    plainUrl: `http://127.0.0.1:${plain.port}`,
    authority,
    arrived,
    stop: () => {
      proxy.close();
      plain.stopNow();
      model.stop();
    },
  };
}
