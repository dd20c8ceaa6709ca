// What a request holds on its way: the memory of a large body. And how a reply ends that the gateway itself breaks.

import { afterEach, describe, expect, test } from "bun:test";
import { gzipSync } from "node:zlib";
import { recognise } from "../../src/dialects/index.ts";
import { handle } from "../../src/gateway/pipeline.ts";
import { FinishQueue } from "../../src/gateway/observe/finish-queue.ts";
import { recordBill } from "../../src/gateway/bill/settle.ts";
import { Request } from "../../src/gateway/request.ts";
import type { ResponseListener, Upstream } from "../../src/lib/http/upstream.ts";
import type { Field } from "../../src/lib/http/fields.ts";
import { keyOf } from "../harness/gateway.ts";
import { openScripted, RecordedExchange, type Scripted, ScriptedResponse } from "./scripted.ts";

let scripted: Scripted;
afterEach(() => scripted.stop());

const MIB = 1024 * 1024;
const EVENT = 'event: ping\ndata: {"type":"ping"}\n\n';
const SSE = [["content-type", "text/event-stream"]] as const;

/** A large request, streamed. */
function writeBody(more: object = {}): Buffer {
  return Buffer.from(
    JSON.stringify({ model: "m", max_tokens: 9, stream: true, system: " ".repeat(2 * MIB), ...more }),
  );
}

interface Watched {
  /** The memory that is taken while the body is read, when the request is sent, and while the response comes. */
  readonly used: { reading: number; sending: number; streaming: number };
  readonly exchange: RecordedExchange;
}

/** Sends the body with these header fields through the whole gateway. `begun` is called after each chunk. */
async function pass(
  body: Buffer,
  fields: readonly Field[],
  begun: (exchange: RecordedExchange) => void = () => {},
  target: "/v1/messages" | "/v1/chat/completions" = "/v1/messages",
): Promise<Watched> {
  const platform = target === "/v1/messages" ? "messages" : "responses";
  scripted = await openScripted({ channels: { a: [] }, platform, target });
  const { gateway } = scripted;
  const { memory } = gateway;
  const used = { reading: -1, sending: -1, streaming: -1 };
  const exchange = new RecordedExchange(target, [["x-gateway-key", keyOf(platform)], ...fields], {});
  exchange.readBody = async () => {
    used.reading = memory.usedBytes;
    return body;
  };
  const send: Upstream["send"] = (_request, listener) => {
    used.sending = memory.usedBytes;
    const watched: ResponseListener = {
      begin: (response) => listener.begin(response),
      resent: () => {},
      receive: (bytes) => {
        listener.receive(bytes);
        used.streaming = memory.usedBytes;
        begun(exchange);
      },
      end: () => listener.end(),
      fail: (fault) => listener.fail(fault),
    };
    return new ScriptedResponse({ fields: SSE, chunks: [EVENT, EVENT] }, watched).start();
  };
  const finished = new FinishQueue<Request>({
    record: (r) => recordBill(r, gateway),
    written: () => {},
    onError: () => {},
  });
  const found = recognise(exchange, gateway.catalog);
  if (found.kind !== "target") throw new Error(`${target} is not an endpoint`);
  const times = { time: Date.now(), arrived: performance.now() };
  const request = new Request({ id: "req_1", exchange, ...times }, found);
  handle(request, { ...gateway, client: { ...gateway.client, send }, finished });
  await finished.ended();
  return { used, exchange };
}

describe("a large body takes memory", () => {
  const body = writeBody();

  test("until an upstream responds, however long the response then takes", async () => {
    const { used } = await pass(body, [["content-length", String(body.length)]]);
    expect(used).toEqual({ reading: 2 * body.length, sending: 2 * body.length, streaming: 0 });
  });

  test("in chunks, as much as it may become, and as much as it has once it is here", async () => {
    const { used } = await pass(body, [["transfer-encoding", "chunked"]]);
    expect(used).toEqual({ reading: 128 * MIB, sending: 2 * body.length, streaming: 0 });
  });

  test("compressed, as much as it may become, however short it is", async () => {
    const short = gzipSync(body);
    const { used } = await pass(short, [
      ["content-length", String(short.length)],
      ["content-encoding", "gzip"],
    ]);
    expect(used).toEqual({ reading: 128 * MIB, sending: 2 * body.length, streaming: 0 });
  });

  test("a large body that a bridge converts takes memory for six copies, until an upstream responds", async () => {
    const messages = [{ role: "user", content: "x".repeat(2 * MIB) }];
    const chat = writeBody({ system: undefined, max_tokens: undefined, messages });
    const { used } = await pass(
      chat,
      [["content-length", String(chat.length)]],
      undefined,
      "/v1/chat/completions",
    );
    expect(used).toEqual({ reading: 6 * chat.length, sending: 6 * chat.length, streaming: 0 });
  });

  test("and gives it back when its request is refused", async () => {
    const { exchange } = await pass(writeBody({ model: 5 }), [["content-length", String(body.length)]]);
    expect([exchange.status, scripted.gateway.memory.usedBytes]).toEqual([400, 0]);
  });
});

test("a reply that the gateway breaks by a fault of its own does not look finished", async () => {
  const { exchange } = await pass(
    Buffer.from('{"model":"m","max_tokens":9,"stream":true,"messages":[]}'),
    [],
    (exchange) => {
      exchange.write = () => {
        throw new Error("a fault");
      };
    },
  );
  expect([exchange.text, exchange.ended]).toEqual([EVENT, "reset"]);
  expect(scripted.records()).toMatchObject([{ id: "req_1", outcome: "upstream_error" }]);
});
