// The simulated upstream's WebSocket: each `response.create` is answered with the events of the same request over HTTP.

import { isObject, parseJson } from "../../../src/lib/json/json.ts";
import { acceptKey, FRAMES, readFrames, writeFrame, writeText } from "../frames.ts";
import type { Field } from "../../../src/lib/http/fields.ts";
import type { Step } from "./script.ts";
import type { Reply, UpgradedWire, WireRequest } from "./wire.ts";

interface Handshake extends Pick<WireRequest, "method" | "target" | "fields"> {
  field(name: string): string | undefined;
}

export function isForSocket(request: Handshake): boolean {
  const { method, target } = request;
  return (
    method === "GET" &&
    target.endsWith("/responses") &&
    request.field("upgrade")?.toLowerCase() === "websocket"
  );
}

/** Accepts the handshake of a WebSocket. `plan` makes the steps of the response to a message. */
export function acceptSocket(
  request: Handshake,
  plan: (body: Record<string, unknown>) => readonly Step[],
): Pick<Reply, "steps" | "upgrade"> {
  const accept = acceptKey(request.field("sec-websocket-key") ?? "");
  const fields: Field[] = [
    ["connection", "Upgrade"],
    ["upgrade", "websocket"],
    ["sec-websocket-accept", accept],
  ];
  return {
    steps: [writeHead("101 Switching Protocols", fields)],
    upgrade: (wire) => openReader(wire, plan),
  };
}

function writeHead(status: string, fields: readonly Field[]): Buffer {
  return Buffer.from(
    `HTTP/1.1 ${status}\r\n${fields.map(([name, value]) => `${name}: ${value}\r\n`).join("")}\r\n`,
  );
}

function openReader(
  wire: UpgradedWire,
  plan: (body: Record<string, unknown>) => readonly Step[],
): (bytes: Uint8Array) => void {
  // On each stream, a response begins when the one before has ended, as on a real server.
  const streams = new Map<unknown, Promise<void>>();
  return readFrames((opcode, payload) => {
    if (opcode === FRAMES.ping) void wire.write(writeFrame(FRAMES.pong, payload));
    if (opcode === FRAMES.close) void wire.write(writeFrame(FRAMES.close, payload)).then(() => wire.end());
    const event = opcode === FRAMES.text ? parseJson(payload.toString()) : null;
    if (!isObject(event) || event["type"] !== "response.create") return;
    const { stream_id, type: _, ...body } = event;
    const before = streams.get(stream_id) ?? Promise.resolve();
    const run = before.then(() => respond(wire, plan({ ...body, stream: true }), stream_id));
    streams.set(stream_id, run);
  });
}

async function respond(wire: UpgradedWire, steps: readonly Step[], streamId: unknown): Promise<void> {
  for (const step of steps) {
    if (wire.gone) return;
    if (step instanceof Uint8Array) {
      const event = readEvent(Buffer.from(step).toString(), streamId);
      if (event !== null) await wire.write(writeText(JSON.stringify(event)));
    } else if (typeof step === "object") {
      await step.pass();
    }
  }
}

/** Reads the event in a piece of an event stream, or in an error. */
function readEvent(piece: string, streamId: unknown): Record<string, unknown> | null {
  const [, data = piece] = /^data: (.*)$/m.exec(piece) ?? [];
  const event = parseJson(data);
  if (!isObject(event)) return null;
  const typed = "type" in event ? event : { type: "error", status: 400, ...event };
  return streamId === undefined ? typed : { ...typed, stream_id: streamId };
}
