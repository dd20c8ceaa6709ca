// What a client gets of an upstream's response, and how the request is judged, for each way in which it can end.

import { afterEach, describe, expect, test } from "bun:test";
import { UpstreamFault } from "../../../src/lib/http/upstream.ts";
import {
  type Chunks,
  openScripted,
  type RecordedExchange,
  type Scripted,
  type ScriptedOptions,
} from "../scripted.ts";

let scripted: Scripted;
afterEach(() => scripted.stop());

const CUT = new UpstreamFault("cut", "closed", true);
const START =
  'event: message_start\ndata: {"type":"message_start","message":{"model":"m","usage":{"input_tokens":5,"output_tokens":1}}}\n\n';
const TEXT =
  'event: content_block_delta\ndata: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hi"}}\n\n';
const DELTA =
  'event: message_delta\ndata: {"type":"message_delta","delta":{},"usage":{"output_tokens":7}}\n\n';
const STOP = 'event: message_stop\ndata: {"type":"message_stop"}\n\n';
const ERROR =
  'event: error\ndata: {"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}\n\n';
const OPEN_EVENT = "event: content_block_delta\ndata: {";

const SSE = [["content-type", "text/event-stream"]] as const;

async function relayChunks(options: Partial<ScriptedOptions>, chunks: Chunks, head = {}): Promise<unknown> {
  const fields = options.stream === true ? { fields: SSE } : {};
  scripted = await openScripted({ ...options, channels: { a: [{ ...fields, ...head, chunks }] } });
  return await scripted.run();
}

/** A client that reads nothing until the test lets it. */
function stopReading(exchange: RecordedExchange): () => void {
  const waiting: (() => void)[] = [];
  let reads = false;
  const write = exchange.write.bind(exchange);
  exchange.write = (chunk) => write(chunk) && reads;
  exchange.onceSent = (listener) => void (reads ? listener() : waiting.push(listener));
  return () => {
    reads = true;
    for (const listener of waiting.splice(0)) listener();
  };
}

interface StreamRow {
  readonly title: string;
  readonly chunks: Chunks;
  /** The outcome, and how the client's exchange ends. */
  readonly ends: readonly [outcome: string, exchange: string];
  /** What the client gets after the upstream's own bytes. */
  readonly added: RegExp;
}

const NOTHING = /^$/;
const ERROR_EVENT = /^event: error\ndata: \{"type":"error",.*\}\n\n$/;

const STREAMS: readonly StreamRow[] = [
  { title: "complete", chunks: [START, TEXT, DELTA, STOP], ends: ["complete", "end"], added: NOTHING },
  { title: "in one chunk", chunks: [START + TEXT + STOP], ends: ["complete", "end"], added: NOTHING },
  {
    title: "cut after its terminal event",
    chunks: [START, TEXT, STOP, CUT],
    ends: ["complete", "end"],
    added: NOTHING,
  },
  {
    title: "cut between two events",
    chunks: [START, TEXT, CUT],
    ends: ["upstream_cut", "end"],
    added: ERROR_EVENT,
  },
  {
    title: "cut inside an event",
    chunks: [START, OPEN_EVENT, CUT],
    ends: ["upstream_cut", "end"],
    added: /^\nevent: error\n/,
  },
  { title: "cut before its first event", chunks: [CUT], ends: ["upstream_cut", "end"], added: ERROR_EVENT },
  {
    title: "ended without its terminal event",
    chunks: [START, TEXT],
    ends: ["upstream_cut", "end"],
    added: ERROR_EVENT,
  },
  {
    title: "ended by the upstream's own error event",
    chunks: [START, ERROR],
    ends: ["upstream_error", "end"],
    added: NOTHING,
  },
];

describe("a stream", () => {
  test.each(STREAMS)("$title", async ({ chunks, ends, added }) => {
    expect(await relayChunks({ stream: true }, chunks)).toBeNull();
    const { exchange } = scripted;
    const own = chunks.filter((chunk) => typeof chunk === "string").join("");
    expect(exchange.text.slice(0, own.length)).toBe(own);
    expect(exchange.text.slice(own.length)).toMatch(added);
    expect([scripted.records()[0]?.outcome, exchange.ended]).toEqual([...ends]);
    expect(scripted.records()).toHaveLength(1);
  });

  test("of the content dialect that is cut ends with an error and a reset", async () => {
    const target = "/v1beta/models/m:streamGenerateContent?alt=sse";
    const chunk = 'data: {"candidates":[{"content":{"parts":[{"text":"Hi"}]}}],"modelVersion":"m"}\r\n\r\n';
    await relayChunks({ platform: "content", target, stream: true }, [chunk, CUT]);
    expect(scripted.exchange.text.slice(chunk.length)).toMatch(/^data: \{"error"/);
    expect(scripted.exchange.ended).toBe("reset");
  });

  test("of the content dialect that is cut inside an event after a finish reason was cut", async () => {
    const target = "/v1beta/models/m:streamGenerateContent?alt=sse";
    const chunk =
      'data: {"candidates":[{"content":{"parts":[{"text":"Hi"}]},"finishReason":"STOP"}],"modelVersion":"m"}\r\n\r\n';
    await relayChunks({ platform: "content", target, stream: true }, [chunk, chunk.slice(0, 40), CUT]);
    expect(scripted.exchange.text.slice(chunk.length + 40)).toMatch(/^\r\n\r\ndata: \{"error"/);
    expect([scripted.records()[0]?.outcome, scripted.exchange.ended]).toEqual(["upstream_cut", "reset"]);
  });

  test("that is cut behind the beginning of a credential keeps these bytes", async () => {
    const chunk = 'event: content_block_delta\ndata: {"text":"credential-of-the';
    await relayChunks({ stream: true }, [START, chunk, CUT]);
    expect(scripted.exchange.text).toStartWith(START + chunk);
    expect(scripted.exchange.text.slice((START + chunk).length)).toMatch(
      /^\n\nevent: error\n|^\nevent: error\n/,
    );
  });

  test.each(["\n", "\n\n"])("cut inside the line end of its last event gets the end: %j", async (missing) => {
    const whole = START + STOP;
    await relayChunks({ stream: true }, [whole.slice(0, -missing.length), CUT]);
    const { text } = scripted.exchange;
    expect([text.slice(0, whole.length), text.slice(whole.length).trim()]).toEqual([whole, ""]);
    expect(scripted.records()[0]?.outcome).toBe("complete");
  });

  test.each(["\n", "\n\n"])(
    "cut inside the line end of its error event gets the end: %j",
    async (missing) => {
      const whole = START + ERROR;
      await relayChunks({ stream: true }, [whole.slice(0, -missing.length), CUT]);
      const { text, ended } = scripted.exchange;
      expect([text.slice(0, whole.length), text.slice(whole.length).trim(), ended]).toEqual([
        whole,
        "",
        "end",
      ]);
      expect(scripted.records()[0]?.outcome).toBe("upstream_error");
    },
  );

  test("whose client disconnects right after the terminal event was complete", async () => {
    const chunks = [START, TEXT, DELTA + STOP];
    scripted = await openScripted({ channels: { a: [{ fields: SSE, chunks }] }, stream: true });
    const { exchange } = scripted;
    const write = exchange.write.bind(exchange);
    exchange.write = (chunk) => {
      const taken = write(chunk);
      // The meter sees a chunk after it has been written.
      if (exchange.text.endsWith(STOP)) queueMicrotask(() => exchange.leave());
      return taken;
    };
    await scripted.run();
    expect([exchange.gone, scripted.records()[0]?.outcome]).toEqual([true, "complete"]);
  });

  test("is not read on while its client does not read", async () => {
    const chunks = [START, TEXT, STOP];
    scripted = await openScripted({ channels: { a: [{ fields: SSE, chunks }] }, stream: true });
    const { exchange } = scripted;
    const readAgain = stopReading(exchange);
    const relayed = scripted.run();
    await new Promise(setImmediate);
    expect(exchange.text).toBe(START);
    readAgain();
    await relayed;
    expect(exchange.text).toBe(START + TEXT + STOP);
  });

  test("whose client disconnects is judged by the client's end", async () => {
    const chunks = [START, TEXT];
    scripted = await openScripted({
      channels: { a: [{ fields: SSE, chunks, isEndless: true }] },
      stream: true,
    });
    const { exchange } = scripted;
    const relayed = scripted.run();
    await new Promise(setImmediate);
    exchange.leave();
    await relayed;
    expect([exchange.text, scripted.records()[0]?.outcome]).toEqual([START + TEXT, "client_closed"]);
  });
});

const MESSAGE = '{"type":"message","model":"m","usage":{"input_tokens":5,"output_tokens":7}}';

describe("a response in one piece", () => {
  test("is sent with its charge in a header", async () => {
    expect(await relayChunks({}, [MESSAGE.slice(0, 20), MESSAGE.slice(20)])).toBeNull();
    const { exchange } = scripted;
    expect([exchange.status, exchange.text, exchange.ended]).toEqual([200, MESSAGE, "end"]);
    expect(exchange.sentField("x-gateway-charge")).toBe("0.000019");
    expect(scripted.records()).toMatchObject([{ outcome: "complete", chargeUsd: "0.000019" }]);
  });

  test("that is cut becomes an error, because nothing of it has been sent", async () => {
    expect(await relayChunks({}, [MESSAGE.slice(0, 20), CUT])).toMatchObject({ code: "upstream_failed" });
    expect([scripted.exchange.status, scripted.records()[0]?.outcome]).toEqual([502, "upstream_cut"]);
  });

  test("that is longer than the gateway holds is sent as it comes, and reset if it is cut", async () => {
    const chunk = " ".repeat(1024 * 1024);
    await relayChunks({}, [chunk, chunk, chunk, chunk, MESSAGE.slice(0, 20), CUT]);
    const { exchange } = scripted;
    expect([exchange.status, exchange.ended, exchange.text.length]).toEqual([
      200,
      "reset",
      4 * 1024 * 1024 + 20,
    ]);
    expect(scripted.records()[0]?.outcome).toBe("upstream_cut");
  });

  test("that ends too early is an error, also if its connection ended well", async () => {
    expect(await relayChunks({}, [MESSAGE.slice(0, 20)])).toMatchObject({ code: "upstream_failed" });
    expect([scripted.exchange.status, scripted.records()[0]?.outcome]).toEqual([502, "upstream_cut"]);
  });

  test("that cannot be sent has its line anyway", async () => {
    scripted = await openScripted({ channels: { a: [{ chunks: [MESSAGE] }] } });
    scripted.exchange.answer = () => {
      throw new Error("the reply has already begun");
    };
    expect(await scripted.run()).toMatchObject({ code: "internal" });
    await new Promise(setImmediate);
    expect(scripted.ledger()).toMatchObject([{ outcome: "complete", charge_usd: "0.000019" }]);
  });

  test.each([false, true])("has no header with the credential (an error: %j)", async (isError) => {
    const fields = [
      ["content-type", "application/json"],
      ["x-account", "credential-of-the-channel"],
      ["x-other", "o"],
    ];
    await relayChunks({}, [MESSAGE], { fields, status: isError ? 400 : 200 });
    expect([scripted.exchange.sentField("x-account"), scripted.exchange.sentField("x-other")]).toEqual([
      undefined,
      "o",
    ]);
  });

  test("if it is large, holds memory until its client has read it", async () => {
    const chunks = [" ".repeat(1024 * 1024), " ", MESSAGE];
    scripted = await openScripted({ channels: { a: [{ chunks }] } });
    const { gateway, exchange } = scripted;
    const readAgain = stopReading(exchange);
    await scripted.run();
    expect(gateway.memory.usedBytes).toBe(1024 * 1024 + 1 + MESSAGE.length);
    readAgain();
    expect(gateway.memory.usedBytes).toBe(0);
  });

  test("if it is large, pauses its upstream until there is memory for it", async () => {
    const chunks = [" ".repeat(1024 * 1024), " ", MESSAGE, " "];
    scripted = await openScripted({ channels: { a: [{ chunks }] } });
    const { gateway, responses } = scripted;
    const others = await gateway.memory.reserve(512 * 1024 * 1024);
    const relayed = scripted.run();
    await new Promise(setImmediate);
    expect([gateway.memory.usedBytes, responses[0]?.finished]).toEqual([512 * 1024 * 1024, false]);
    others.free();
    expect(await relayed).toBeNull();
    expect(responses[0]?.finished).toBe(true);
  });

  test("that is an error about the request passes unchanged and costs nothing", async () => {
    const body = '{"type":"error","error":{"type":"invalid_request_error","message":"no"}}';
    expect(await relayChunks({}, [body], { status: 400 })).toBeNull();
    expect([scripted.exchange.status, scripted.exchange.text]).toEqual([400, body]);
    expect(scripted.exchange.sentField("x-gateway-charge")).toBe("0");
    expect(scripted.records()).toMatchObject([{ outcome: "upstream_error", status: 400 }]);
  });
});
