// Random traffic on real sockets, with what the simulator lacks: framing, pieces, connections that end when
// they are used again, unrequested answers, half-closed connections, requests that parsers read differently.
// Whatever happens, no client gets bytes of another request, and no POST arrives twice.

import { expect, test } from "bun:test";
import { createServer, type Socket } from "node:net";
import { startGatewayHere } from "../../harness/gateway.ts";
import { openRaw, type RawConnection } from "../../harness/raw.ts";
import { makeTempFolder, readLedger } from "../../harness/temp.ts";
import { Random } from "../../simulate/world/random.ts";

const CLIENTS = 12;
const SEEDS = Array.from({ length: 10 }, (_, index) => index + 1);
/** The mark of a request, in capital letters: the gateway's ids have small ones. */
const MARK = /M\d+X\d+X/g;

test.each(SEEDS)(
  "with seed %p, every reply belongs to its request, and every POST arrives once",
  async (seed) => {
    const upstream = await startUpstream(seed);
    const names = Array.from({ length: CLIENTS }, (_, index) => `c${index}`);
    const each = (make: (name: string) => object) =>
      Object.fromEntries(names.map((name) => [name, make(name)]));
    const folder = makeTempFolder();
    const gateway = startGatewayHere({
      folder,
      config: {
        channels: each((name) => ({
          platform: "messages",
          base_url: `http://127.0.0.1:${upstream.port}/${name}`,
          credential: "credential-of-the-channel",
        })),
        groups: each((name) => ({ platform: "messages", channels: [name] })),
        keys: names.map((name) => ({ name, group: name, secret: `sk-chaos-${name}` })),
      },
    });
    try {
      const clients = names.map((name, index) => new Client(new Random(seed, name), index, gateway.port));
      await Promise.all(clients.map((client) => client.run()));
      for (const client of clients) client.check(upstream.bodies);
    } finally {
      await gateway.stop();
      upstream.stop();
    }
    const lines = Map.groupBy(readLedger(folder.join("ledger.jsonl")), ({ model }) => model);
    folder.remove();
    for (const [mark, count] of upstream.arrivals) {
      expect([mark, count]).toEqual([mark, 1]);
      expect(mark).not.toContain("999");
      expect([mark, lines.get(modelOf(mark))?.length]).toEqual([mark, 1]);
    }
    for (const own of lines.values()) expect(own).toHaveLength(1);
    expect(upstream.arrivals.size).toBeGreaterThan(CLIENTS / 2);
  },
);

/** Names the model of one request. No other request has it, so that its ledger line can be found. */
const modelOf = (mark: string): string => `claude-sonnet-4-5-${mark}`;

// The upstream, whose answers have random forms and ends.

async function startUpstream(seed: number) {
  const arrivals = new Map<string, number>();
  const bodies = new Map<string, string>();
  let connections = 0;
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    const random = new Random(seed, `connection ${connections++}`);
    let came = "";
    socket.on("error", () => {});
    socket.on("end", () => socket.end());
    socket.on("data", (bytes) => {
      came += bytes.toString("latin1");
      for (;;) {
        const end = came.indexOf("\r\n\r\n");
        const length = Number(/^content-length: (\d+)\r$/m.exec(came.slice(0, end + 2))?.[1] ?? 0);
        if (end < 0 || came.length < end + 4 + length) return;
        const request = came.slice(0, end + 4 + length);
        came = came.slice(request.length);
        const [mark = ""] = request.match(MARK) ?? [];
        arrivals.set(mark, (arrivals.get(mark) ?? 0) + 1);
        const isStream = request.includes('"stream":true');
        bodies.set(mark, isStream ? writeStream(mark, random) : writeMessage(mark, random));
        void answer(socket, random, bodies.get(mark) ?? "");
      }
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = Object(server.address());
  return { port, arrivals, bodies, stop: () => void server.close() };
}

const writeText = (mark: string, random: Random): string => `${mark} `.repeat(random.skewed(1, 400));

function writeMessage(mark: string, random: Random): string {
  return JSON.stringify({
    id: `msg_${mark}`,
    model: modelOf(mark),
    content: [{ type: "text", text: writeText(mark, random) }],
    stop_reason: "end_turn",
    usage: { input_tokens: 3, output_tokens: 5 },
  });
}

function writeStream(mark: string, random: Random): string {
  const event = (type: string, more: object): string =>
    `event: ${type}\ndata: ${JSON.stringify({ type, ...more })}\n\n`;
  const message = { id: `msg_${mark}`, model: modelOf(mark), usage: { input_tokens: 3, output_tokens: 1 } };
  return [
    event("message_start", { message }),
    event("content_block_delta", { index: 0, delta: { type: "text_delta", text: writeText(mark, random) } }),
    event("message_delta", { delta: { stop_reason: "end_turn" }, usage: { output_tokens: 5 } }),
    event("message_stop", {}),
  ].join("");
}

const FRAMINGS = ["length", "chunked", "chunked", "close"] as const;

function writeWire(framing: (typeof FRAMINGS)[number], body: string, random: Random): string {
  const interim = random.chance(200) ? "HTTP/1.1 103 Early Hints\r\nlink: </x>\r\n\r\n" : "";
  const type = body.startsWith("{") ? "application/json" : "text/event-stream";
  const ends = {
    length: `content-length: ${body.length}`,
    chunked: "transfer-encoding: chunked",
    close: "x: y",
  };
  const head = `${interim}HTTP/1.1 200 OK\r\ncontent-type: ${type}\r\n${ends[framing]}\r\n\r\n`;
  return head + (framing === "chunked" ? writeChunks(body, random) : body);
}

async function answer(socket: Socket, random: Random, body: string): Promise<void> {
  const framing = random.pick(FRAMINGS);
  const wire = writeWire(framing, body, random);
  const isCut = random.chance(200);
  // Nobody requested this answer. It comes with the real one, so that it cannot pass for the next answer.
  const isUnasked = random.chance(150) && !isCut && framing !== "close";
  const unasked = isUnasked ? "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nM9X9X" : "";
  const end = isCut ? random.pick([0, random.int(wire.length)]) : wire.length;
  for (let at = 0; at < end;) {
    const size = random.pick([1, 7, 60, 1500, 1 << 20]);
    socket.write(at + size < end ? wire.slice(at, at + size) : wire.slice(at, end) + unasked);
    at += size;
    // Now and then, the next pieces go into a later packet.
    if (random.chance(300)) await new Promise((resolve) => setImmediate(resolve));
  }
  if (framing === "close" && !isCut) socket.end();
  else if (isCut) endNow(socket, random);
  // Now and then, the connection ends while the gateway may use it again.
  else if (random.chance(300)) setTimeout(() => endNow(socket, random), random.int(4));
}

function endNow(socket: Socket, random: Random): void {
  if (random.chance(500)) socket.end();
  else socket.resetAndDestroy();
}

function writeChunks(body: string, random: Random): string {
  let text = "";
  for (let at = 0; at < body.length;) {
    const chunk = body.slice(at, at + random.pick([1, 5, 300, 5000]));
    text += `${chunk.length.toString(16)}\r\n${chunk}\r\n`;
    at += chunk.length;
  }
  return `${text}0\r\n\r\n`;
}

// The clients, which send requests of random forms and read the replies strictly.

interface Got {
  readonly status: number;
  readonly body: string;
  readonly isWhole: boolean;
}

class Client {
  readonly #random: Random;
  readonly #index: number;
  readonly #port: number;
  readonly #got: { readonly mark: string; readonly isStream: boolean; readonly reply: Got }[] = [];
  #count = 0;

  constructor(random: Random, index: number, port: number) {
    this.#random = random;
    this.#index = index;
    this.#port = port;
  }

  async run(): Promise<void> {
    for (let left = this.#random.between(2, 4); left > 0; left--) await this.#useConnection();
  }

  async #useConnection(): Promise<void> {
    const connection = await openRaw(this.#port);
    const requests = Array.from({ length: this.#random.between(1, 3) }, () => this.#write());
    const leaves = this.#random.chance(150);
    if (this.#random.chance(200)) return this.#attack(connection);
    for (const [index, { text }] of requests.entries()) {
      this.#send(connection, text);
      if (leaves) break;
      // The wait is also over if the connection ends.
      await connection
        .until((bytes) => readReplies(bytes).filter(({ isWhole }) => isWhole).length > index)
        .catch(() => {});
    }
    for (const [index, reply] of readReplies(connection.bytes()).entries()) {
      const { mark, isStream } = requests[index]!;
      this.#got.push({ mark, isStream, reply });
    }
    if (leaves && this.#random.chance(500)) connection.reset();
    else connection.close();
  }

  #write(): { readonly mark: string; readonly isStream: boolean; readonly text: string } {
    const mark = `M${this.#index}X${this.#count++}X`;
    const isStream = this.#random.chance(500);
    const prompt = `${mark} `.repeat(this.#random.skewed(1, 100));
    const body = JSON.stringify({
      model: modelOf(mark),
      max_tokens: 9,
      stream: isStream,
      messages: [{ role: "user", content: prompt }],
    });
    const isChunked = this.#random.chance(300);
    const framing = isChunked ? "transfer-encoding: chunked" : `content-length: ${body.length}`;
    const text = this.#writeHead(framing) + (isChunked ? writeChunks(body, this.#random) : body);
    return { mark, isStream, text };
  }

  #writeHead(framing: string): string {
    return `POST /v1/messages HTTP/1.1\r\nhost: 127.0.0.1\r\nx-api-key: sk-chaos-c${this.#index}\r\n${framing}\r\n\r\n`;
  }

  #send(connection: RawConnection, text: string): void {
    for (let at = 0; at < text.length;) {
      const size = this.#random.pick([1, 9, 200, 1 << 20]);
      connection.send(text.slice(at, at + size));
      at += size;
    }
  }

  /** Sends bytes in which some parsers see one request and others two. The second request must never arrive. */
  async #attack(connection: RawConnection): Promise<void> {
    const hidden = this.#write().text.replaceAll(MARK, "M999X999X");
    const framing = this.#random.pick([
      `content-length: ${hidden.length}\r\ntransfer-encoding: chunked`,
      `content-length: 5\r\ncontent-length: ${hidden.length + 5}`,
      "transfer-encoding: gzip, chunked",
      `content-length: 5\r\n content-length: 0`,
      `content-length : 5`,
      `content-length: +5`,
    ]);
    this.#send(connection, `${this.#writeHead(framing)}0\r\n\r\n${hidden}`);
    await connection.ended;
  }

  check(bodies: ReadonlyMap<string, string>): void {
    for (const { mark, isStream, reply } of this.#got) {
      expect(new Set(reply.body.match(MARK) ?? [mark])).toEqual(new Set([mark]));
      if (reply.status !== 200 || !reply.isWhole) continue;
      if (isStream && reply.body.includes("event: error\n")) continue;
      // If a stream may have been cut within its last line end, the gateway completes the line end.
      expect(reply.body.replace(/\n{3,}$/, "\n\n")).toBe(bodies.get(mark) ?? "");
    }
  }
}

/** Reads replies as a strict client does. The last one may be cut. */
function readReplies(bytes: Buffer): Got[] {
  const got: Got[] = [];
  let text = bytes.toString("latin1");
  for (let end = text.indexOf("\r\n\r\n"); end >= 0; end = text.indexOf("\r\n\r\n")) {
    const head = text.slice(0, end + 2);
    const status = /^HTTP\/1\.1 (\d{3}) [^\r]*\r\n/.exec(head)?.[1];
    if (status === undefined) throw new Error(`not a reply: ${JSON.stringify(head.slice(0, 100))}`);
    const length = /^content-length: (\d+)\r$/im.exec(head)?.[1];
    text = text.slice(end + 4);
    const known = Number(length ?? 0);
    const { body, isWhole, used } =
      length === undefined
        ? readChunks(text)
        : { body: text.slice(0, known), isWhole: text.length >= known, used: known };
    text = text.slice(used);
    got.push({ status: Number(status), body, isWhole });
    if (!isWhole) break;
  }
  return got;
}

function readChunks(text: string): { body: string; isWhole: boolean; used: number } {
  let body = "";
  let used = 0;
  for (;;) {
    const [line, size = ""] = /^([0-9a-f]+)\r\n/.exec(text.slice(used, used + 12)) ?? [""];
    const end = used + line.length + Number.parseInt(size, 16);
    if (line === "" || text.length < end + 2) return { body, isWhole: false, used };
    body += text.slice(used + line.length, end);
    used = end + 2;
    if (size === "0") return { body, isWhole: true, used };
  }
}

test("a stopped gateway sends nothing to its port, which another program may have by then", async () => {
  const gateway = startGatewayHere({ config: "listen: { port: 0 }" });
  await gateway.stop();
  const urls: string[] = [];
  const fetch = ({ url }: Request): Response => new Response(String(urls.push(url)));
  using _ = Bun.serve({ port: gateway.port, hostname: "127.0.0.1", fetch });
  await Bun.sleep(800);
  expect(urls).toEqual([]);
});
