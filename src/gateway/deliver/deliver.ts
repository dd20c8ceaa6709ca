// Brings a response to the client, in one of its forms: as a stream, converted, or whole.

import type { Gateway } from "../gateway.ts";
import type { Ending, Request } from "../request.ts";
import { type ChannelResponse, isJsonResponse } from "../upstream/answer.ts";
import { convertStream } from "./converted-stream.ts";
import { beginDelivery, noteLeft } from "./delivery.ts";
import { passStream } from "./passed-stream.ts";
import { deliverWhole } from "./whole.ts";

export async function deliver(
  r: Request,
  { response, candidate, body }: ChannelResponse,
  gateway: Gateway,
): Promise<Ending> {
  beginDelivery(r, response, candidate, gateway);
  const { bridge } = r;
  // Some upstreams always send a stream, and some a whole response where a stream was requested.
  const isWhole = !r.streamed || (bridge !== null && (!r.stream || isJsonResponse(response)));
  if (isWhole) return deliverWhole(r, body, gateway);
  return bridge === null ? passStream(r, body, gateway) : convertStream(r, body, gateway);
}

/** When a client disconnects before its response has ended, the upstream request is cancelled too. That happens at once, or,
 *  if the request is billed, after `on_disconnect.drain`, during which the usage may still come. */
export function watchClient(r: Request, gateway: Gateway): void {
  r.exchange.onGone(() => leave(r, gateway));
}

function leave(r: Request, { catalog, halt }: Gateway): void {
  if (r.settled) return;
  noteLeft(r);
  const { drainMs } = catalog.onDisconnect;
  const cancel = (): void => r.upstream.cancel();
  if (drainMs === 0 || !r.open || halt.aborted) return cancel();
  const timer = setTimeout(cancel, drainMs);
  halt.addEventListener("abort", cancel);
  r.endDrain = () => {
    clearTimeout(timer);
    halt.removeEventListener("abort", cancel);
  };
}
