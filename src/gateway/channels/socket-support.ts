// Remembers two things across connections: the channels that offer no WebSocket, so that a client does not wait for their
// refusal each time, and the channel that made each response.

import type { Channel } from "../../config/catalog.ts";
import { BoundedMap } from "../../lib/memory/bounded-map.ts";

/** Providers add it from time to time. */
const ASK_AGAIN_MS = 10 * 60_000;
const MAX_HOMES = 10_000;

export class SocketSupport {
  /** WebSockets of clients that are open now. */
  open = 0;
  /** The address of a channel's upstream → when to ask again. */
  readonly #refusedUntil = new Map<string, number>();

  /** Response id → the channel's name. */
  readonly #homes = new BoundedMap<string, string>(MAX_HOMES);

  /** The channel that made a response, as far as it was made on a WebSocket here and not long ago. */
  homeOf(responseId: string): string | undefined {
    return this.#homes.get(responseId);
  }

  keepHome(responseId: string, channel: string): void {
    if (!this.#homes.has(responseId)) this.#homes.set(responseId, channel);
  }

  mayOffer(channel: Channel, now: number): boolean {
    if (!channel.websocket) return false;
    return now >= (this.#refusedUntil.get(addressOf(channel)) ?? 0);
  }

  noteRefusal(channel: Channel, now: number): void {
    this.#refusedUntil.set(addressOf(channel), now + ASK_AGAIN_MS);
  }
}

/** A channel with another address is another upstream. */
function addressOf({ name, baseUrl }: Channel): string {
  return `${name} ${baseUrl.href}`;
}
