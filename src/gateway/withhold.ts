// The credential never comes back, wherever an upstream quotes it. Errors are
// searched for all that could tell of it (headers.ts); of what is passed on as it
// comes, each piece is searched for the whole of it, which costs next to nothing.

import type { Channel } from "../config/catalog.ts";
import { scrub } from "./headers.ts";

/** A shorter one may be a word that stands in for none. */
const SHORTEST = 16;

const secrets = new WeakMap<Channel, Buffer>();

function secretOf(channel: Channel): Buffer {
  const known = secrets.get(channel);
  if (known !== undefined) return known;
  const secret = Buffer.from(channel.credential);
  secrets.set(channel, secret);
  return secret;
}

export function withhold(bytes: Uint8Array, channel: Channel): Uint8Array {
  const secret = secretOf(channel);
  if (secret.length < SHORTEST || bytes.length < secret.length) return bytes;
  const view = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  return view.includes(secret) ? scrub(bytes, [channel.credential]) : bytes;
}
