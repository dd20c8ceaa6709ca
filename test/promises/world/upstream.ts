// An upstream that follows a script, over real sockets. Each channel of a test has a path of its own below one server, so
// that a test sees which channel got what, and says what that channel does next.

import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { answerTo, listOf } from "./answers.ts";

export type Fields = Readonly<Record<string, string>>;

/** A request as the upstream got it. `path` is without the channel's own beginning. */
export interface Seen {
  readonly method: string;
  readonly path: string;
  readonly fields: readonly (readonly [name: string, value: string])[];
  field(name: string): string | undefined;
  readonly bytes: Buffer;
  readonly text: string;
}

/** How an answer ends: whole, by a closed or a reset connection, or not at all. */
type Ending = "end" | "cut" | "reset" | "silence";

export interface Reply {
  readonly status?: number;
  readonly fields?: Fields;
  /** The body, which is sent with a `content-length`. Objects become JSON. */
  readonly body?: string | Uint8Array | object;
  /** In place of `body`: chunks of an event stream. */
  readonly pieces?: readonly string[];
  readonly ending?: Ending;
}

/** Bytes that a script writes by hand. */
export interface Out {
  head(status: number, fields: Fields): void;
  write(text: string | Uint8Array): void;
  end(ending?: Ending): void;
  /** Resolves when the gateway has closed the connection. */
  readonly left: Promise<void>;
}

export type Script = Reply | ((seen: Seen, out: Out) => Reply | void | Promise<Reply | void>);

type Models = readonly string[] | null;

export interface Channel {
  readonly url: string;
  /** Requests except for model lists, in order. */
  readonly seen: Seen[];
  /** The requests for model lists. */
  readonly lists: Seen[];
  /** The scripts of the channel's next requests, one each. After them the channel answers as usual. */
  next(...scripts: Script[]): void;
  always(script?: Script): void;
  /** The models in the channel's list. A function gives those of the list at a path. Null: no list. */
  models: Models | ((path: string) => Models);
  /** Resolves when the channel has got this many requests in all. */
  got(count: number): Promise<Seen>;
}

export interface Upstream {
  readonly port: number;
  channel(name: string): Channel;
  stop(): void;
}

interface Inside extends Channel {
  take(): Script;
  notice(seen: Seen): void;
}

export async function startUpstream(): Promise<Upstream> {
  const channels = new Map<string, Inside>();
  const server = createServer((request, response) => void serve(channels, request, response));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("the upstream has no port");
  return {
    port: address.port,
    channel: (name) => {
      const found = channels.get(name) ?? makeChannel(`http://127.0.0.1:${address.port}/${name}`);
      channels.set(name, found);
      return found;
    },
    stop: () => {
      server.closeAllConnections();
      server.close();
    },
  };
}

function makeChannel(url: string): Inside {
  const queue: Script[] = [];
  const waiting: { count: number; resolve: (seen: Seen) => void }[] = [];
  const seen: Seen[] = [];
  let usual: Script = {};
  return {
    url,
    seen,
    lists: [],
    models: ["test-model", "other-model"],
    next: (...scripts) => void queue.push(...scripts),
    always: (script = {}) => (usual = script),
    got: (count) => {
      const found = seen[count - 1];
      if (found !== undefined) return Promise.resolve(found);
      const { promise, resolve } = Promise.withResolvers<Seen>();
      waiting.push({ count, resolve });
      return promise;
    },
    take: () => queue.shift() ?? usual,
    notice: (request) => {
      seen.push(request);
      for (const { count, resolve } of waiting) if (seen.length >= count) resolve(seen[count - 1]!);
    },
  };
}

async function readRequest(request: IncomingMessage, path: string): Promise<Seen> {
  const parts: Buffer[] = [];
  for await (const part of request) parts.push(part);
  const raw = request.rawHeaders;
  const fields = Array.from(
    { length: raw.length / 2 },
    (_, index) => [raw[2 * index]!.toLowerCase(), raw[2 * index + 1]!] as const,
  );
  const bytes = Buffer.concat(parts);
  return {
    method: request.method ?? "",
    path,
    fields,
    field: (name) => fields.find(([other]) => other === name)?.[1],
    bytes,
    text: bytes.toString(),
  };
}

async function serve(
  channels: ReadonlyMap<string, Inside>,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const [, name = "", rest = ""] = /^\/([^/]*)(.*)$/.exec(request.url ?? "") ?? [];
  const channel = channels.get(name);
  if (channel === undefined) return void response.writeHead(404).end();
  const seen = await readRequest(request, rest);
  const out = openOut(response);
  if (seen.method === "GET" && /\/models(?:\?|$)/.test(rest)) return sendList(channel, seen, out);
  channel.notice(seen);
  const script = channel.take();
  const reply = typeof script === "function" ? await script(seen, out) : script;
  if (reply !== undefined) send(isUsual(reply) ? { ...answerTo(seen), ...reply } : reply, out);
}

function sendList(channel: Inside, seen: Seen, out: Out): void {
  channel.lists.push(seen);
  const models = typeof channel.models === "function" ? channel.models(seen.path) : channel.models;
  if (models === null) send({ status: 404, body: { error: { message: "no list" } } }, out);
  else send({ body: listOf(seen.path, models) }, out);
}

function openOut(response: ServerResponse): Out {
  const left = new Promise<void>((resolve) => response.on("close", resolve));
  return {
    left,
    head: (status, fields) => {
      response.writeHead(status, fields);
      response.flushHeaders();
    },
    write: (text) => void response.write(text),
    end: (ending = "end") => {
      const { socket } = response;
      if (ending === "end") response.end();
      else if (ending === "cut") socket?.destroy();
      else if (ending === "reset") socket?.resetAndDestroy();
    },
  };
}

/** Whether a script leaves the body to `answerTo`, because it names neither a body nor an error. */
const isUsual = ({ status = 200, body, pieces }: Reply): boolean =>
  status === 200 && body === undefined && pieces === undefined;

function send({ status = 200, fields, body = {}, pieces, ending }: Reply, out: Out): void {
  if (pieces !== undefined) {
    out.head(status, { "content-type": "text/event-stream", ...fields });
    for (const piece of pieces) out.write(piece);
    return out.end(ending);
  }
  const isBytes = typeof body === "string" || body instanceof Uint8Array;
  const bytes = Buffer.from(isBytes ? body : JSON.stringify(body));
  out.head(status, {
    "content-type": "application/json",
    "content-length": String(bytes.length),
    ...fields,
  });
  const isBroken = ending === "cut" || ending === "reset";
  out.write(isBroken ? bytes.subarray(0, bytes.length / 2) : bytes);
  out.end(ending);
}
