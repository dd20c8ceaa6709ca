// Sends a request once, and receives its reply.

import type { Arrival } from "../upstreams/upstream.ts";
import type { ClientEars, SimExchange } from "../world/client-side.ts";
import type { Network } from "../world/network.ts";
import { NATURE, type Scheduler } from "../world/scheduler.ts";
import { type Ask, writeCall } from "./requests.ts";

export interface Reply {
  readonly status: number;
  readonly fields: Map<string, string>;
  /** The received bytes, once the reply has ended. */
  body: Buffer;
}

export interface Send extends Ask {
  readonly at: number;
  reply: Reply | null;
  /** How the sending ended. `reply`: with a complete reply; `lost`: the connection broke; `left`: the client left as planned;
   *  `refused`: no gateway listened; `gave up`: after PATIENCE_MS. */
  end: "open" | "reply" | "lost" | "left" | "refused" | "gave up";
  endedAt: number;
  /** The upstream's answer, if the client got all of it. */
  whole: Arrival | null;
  /** Whether a gateway died while the request was in flight. */
  orphaned: boolean;
}

/** Longer than every time limit of the gateway in all simulated configs. */
const PATIENCE_MS = 150_000;

/** Sends a request. Its plan says how fast the client reads, and when it leaves. */
export function sendRequest(network: Network, send: Send, ended: () => void): void {
  const { slow, leave } = send.request;
  const { scheduler } = network;
  const chunks: Buffer[] = [];
  let exchange: SimExchange | null = null;
  let got = 0;
  let sinceRest = 0;
  const end = (how: Send["end"]): void => {
    if (send.end !== "open") return;
    stopWaiting();
    send.end = how;
    send.endedAt = scheduler.now;
    if (send.reply !== null) send.reply.body = Buffer.concat(chunks);
    if (how === "left" || how === "gave up") exchange?.leave();
    ended();
  };
  const stopWaiting = startWaiting(scheduler, send, end);
  const ears: ClientEars = {
    refused: () => end("refused"),
    begin: (status, fields) => void (send.reply = { status, fields, body: Buffer.alloc(0) }),
    data: (bytes) => {
      if (send.end !== "open") return;
      chunks.push(bytes);
      got += bytes.length;
      if (leave !== null && got >= leave.afterBytes) return end("left");
      sinceRest += bytes.length;
      if (slow === null || sinceRest < slow.everyBytes) return;
      sinceRest = 0;
      exchange?.setReading(false);
      scheduler.after(slow.ms * 1000, NATURE, `${send.name} reads again`, () => exchange?.setReading(true));
    },
    ended: () => end("reply"),
    lost: () => end("lost"),
  };
  network.request(writeCall(send), ears, (started) => {
    exchange = started;
    if (send.end !== "open") started.leave();
  });
}

/** Returns a function that ends the wait. */
function startWaiting(
  scheduler: Scheduler,
  { name, request }: Send,
  end: (how: "gave up" | "left") => void,
): () => void {
  const after = (ms: number, how: "gave up" | "left") =>
    scheduler.after(ms * 1000, NATURE, `${name} has waited ${ms} ms`, () => end(how));
  const events = [after(PATIENCE_MS, "gave up")];
  if (request.leave !== null) events.push(after(request.leave.afterMs, "left"));
  return () => {
    for (const event of events) scheduler.cancel(event);
  };
}
