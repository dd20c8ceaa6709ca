// One request of a client over HTTP: how long it waits, how fast it reads, and when it leaves.

import type { Network } from "../world/network.ts";
import type { ClientEars, ClientExchange } from "../world/client-side.ts";
import { PORT } from "../world/config.ts";
import { NATURE } from "../world/scheduler.ts";
import { writeCall } from "./requests.ts";
import { Patience, type Send } from "./send.ts";

export function sendOverHttp(network: Network, send: Send, ended: () => void): void {
  const { request } = send;
  const { scheduler } = network;
  const chunks: Buffer[] = [];
  let exchange: ClientExchange | null = null;
  let got = 0;
  let sinceRest = 0;
  const end = (how: Send["end"]): void => {
    if (send.end !== "open") return;
    patience.end();
    send.end = how;
    send.endedAt = scheduler.now;
    if (send.reply !== null) send.reply.body = Buffer.concat(chunks);
    if (how === "left" || how === "gave up") exchange?.leave();
    ended();
  };
  const patience = new Patience(scheduler, send, end);
  const ears: ClientEars = {
    refused: () => end("refused"),
    begin: (status, fields) => void (send.reply = { status, fields, body: Buffer.alloc(0) }),
    data: (bytes) => {
      if (send.end !== "open") return;
      chunks.push(bytes);
      got += bytes.length;
      send.received = got;
      if (request.leave !== null && got >= request.leave.afterBytes) return end("left");
      sinceRest += bytes.length;
      if (request.slow === null || sinceRest < request.slow.everyBytes) return;
      sinceRest = 0;
      exchange?.setReading(false);
      scheduler.after(request.slow.ms * 1000, NATURE, `${send.name} reads again`, () =>
        exchange?.setReading(true),
      );
    },
    ended: () => end("reply"),
    lost: () => end("lost"),
  };
  network.request(PORT, writeCall(send.client, send), ears, (started) => {
    exchange = started;
    if (send.end !== "open") started.leave();
  });
}
