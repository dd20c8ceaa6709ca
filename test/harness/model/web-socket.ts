// The simulated upstream's WebSocket: each `response.create` is answered with the events of the same request over HTTP.

import { isObject, parseJson } from "../../../src/lib/json/json.ts";
import { CLOSE_CODES } from "../../../src/lib/http/web-socket.ts";
import {
  FrameError,
  FrameReader,
  writeClose,
  writeMessage,
  writePong,
} from "../../../src/lib/http1/websocket/frames.ts";
import { acceptHandshake, findHandshakeFault } from "../../../src/lib/http1/websocket/handshake.ts";
import type { Field } from "../../../src/lib/http/fields.ts";
import type { Step } from "./script.ts";
import type { Reply, UpgradedWire, WireRequest } from "./wire.ts";

interface Handshake extends Pick<WireRequest, "method" | "target" | "fields"> {
  field(name: string): string | undefined;
}

const MAX_MESSAGE_BYTES = 64 * 1024 * 1024;

export function isForSocket(request: Handshake): boolean {
  const { method, target } = request;
  return (
    method === "GET" &&
    target.endsWith("/responses") &&
    request.field("upgrade")?.toLowerCase() === "websocket"
  );
}

/** `plan` makes the steps of the response to a message. */
export function acceptSocket(
  request: Handshake,
  plan: (body: Record<string, unknown>) => readonly Step[],
): Pick<Reply, "steps" | "upgrade"> {
  if (findHandshakeFault(request) !== null)
    return { steps: [writeHead("400 Bad Request", [["content-length", "0"]])] };
  return {
    steps: [writeHead("101 Switching Protocols", [["connection", "Upgrade"], ...acceptHandshake(request)])],
    upgrade: (wire) => {
      const reader = openReader(wire, plan);
      return (bytes) => feed(reader, bytes, wire);
    },
  };
}

function writeHead(status: string, fields: readonly Field[]): Buffer {
  return Buffer.from(
    `HTTP/1.1 ${status}\r\n${fields.map(([name, value]) => `${name}: ${value}\r\n`).join("")}\r\n`,
  );
}

function feed(reader: FrameReader, bytes: Uint8Array, wire: UpgradedWire): void {
  try {
    reader.feed(bytes);
  } catch (error) {
    if (!(error instanceof FrameError)) throw error;
    void wire.write(writeClose({ code: error.code, reason: error.message }, false)).then(() => wire.end());
  }
}

function openReader(
  wire: UpgradedWire,
  plan: (body: Record<string, unknown>) => readonly Step[],
): FrameReader {
  // One response after another on each stream, as real servers do it.
  const streams = new Map<unknown, Promise<void>>();
  return new FrameReader(
    { masked: true, maxMessageBytes: MAX_MESSAGE_BYTES },
    {
      message: ({ bytes }) => {
        const event = parseJson(new TextDecoder().decode(bytes));
        if (!isObject(event) || event["type"] !== "response.create") return;
        const { stream_id, type: _, ...body } = event;
        const before = streams.get(stream_id) ?? Promise.resolve();
        const run = before.then(() => respond(wire, plan({ ...body, stream: true }), stream_id));
        streams.set(stream_id, run);
      },
      ping: (payload) => void wire.write(writePong(payload, false)),
      closing: ({ code }) => {
        const reply = { code: code === CLOSE_CODES.none ? CLOSE_CODES.normal : code, reason: "" };
        void wire.write(writeClose(reply, false)).then(() => wire.end());
      },
    },
  );
}

async function respond(wire: UpgradedWire, steps: readonly Step[], streamId: unknown): Promise<void> {
  for (const step of steps) {
    if (wire.gone) return;
    if (step instanceof Uint8Array) {
      const event = readEvent(Buffer.from(step).toString(), streamId);
      if (event !== null)
        await wire.write(writeMessage({ kind: "text", bytes: Buffer.from(JSON.stringify(event)) }, false));
    } else if (typeof step === "object") {
      await step.pass();
    }
  }
}

/** The event in a piece of an event stream, or of an error. */
function readEvent(piece: string, streamId: unknown): Record<string, unknown> | null {
  const [, data = piece] = /^data: (.*)$/m.exec(piece) ?? [];
  const event = parseJson(data);
  if (!isObject(event)) return null;
  const typed = "type" in event ? event : { type: "error", status: 400, ...event };
  return streamId === undefined ? typed : { ...typed, stream_id: streamId };
}
