// Remembers the channels that offer no WebSocket, so that a client does not wait for their refusal each time.

import type { Channel } from "../../config/catalog.ts";

/** Providers add it from time to time. */
const ASK_AGAIN_MS = 10 * 60_000;

export class SocketSupport {
  /** WebSockets of clients that are open now. */
  open = 0;
  /** The address of a channel's upstream → when to ask again. */
  readonly #refusedUntil = new Map<string, number>();

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
