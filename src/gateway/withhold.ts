// The credential never comes back, wherever an upstream repeats it. Errors are
// searched for all that could tell of it (headers.ts); what is passed on as it
// comes is searched for the whole of it, which costs next to nothing.

import type { Channel } from "../config/catalog.ts";
import { asBuffer } from "../lib/bytes.ts";
import type { Field } from "../lib/http1/types.ts";

/** A shorter one may be a word that stands in for none. */
const SHORTEST = 16;
/** A shorter beginning of a credential says nothing of it. */
const TELLING_LENGTH = 12;
const NEWLINE = 0x0a;
const NOTHING = Buffer.alloc(0);

type Credited = Pick<Channel, "credential">;

const secrets = new WeakMap<Credited, Buffer>();

function secretOf(channel: Credited): Buffer {
  const known = secrets.get(channel);
  if (known !== undefined) return known;
  const secret = Buffer.from(channel.credential);
  secrets.set(channel, secret);
  return secret;
}

export function withhold(bytes: Uint8Array, channel: Credited): Uint8Array {
  const secret = secretOf(channel);
  if (secret.length < SHORTEST || bytes.length < secret.length) return bytes;
  const view = asBuffer(bytes);
  return view.includes(secret) ? mask(view, secret) : bytes;
}

/** As long as it was: how long the answer is may have been told already. */
function mask(bytes: Uint8Array, secret: Buffer): Buffer {
  const clean = Buffer.from(bytes);
  for (let at = clean.indexOf(secret); at >= 0; at = clean.indexOf(secret, at + secret.length)) {
    clean.fill("*", at, at + secret.length);
  }
  return clean;
}

/** Header fields without those in which it stands. */
export function withholdFields(fields: Field[], { credential }: Credited): Field[] {
  const telling = credential.length >= SHORTEST && fields.some(([, value]) => value.includes(credential));
  return telling ? fields.filter(([, value]) => !value.includes(credential)) : fields;
}

/**
 * The same for an answer that comes in pieces, wherever they are cut: what ends a piece and may begin the
 * credential waits for the next one. The end of an event never does: no credential holds a line's end.
 */
export class Withholding {
  readonly #channel: Credited;
  readonly #secret: Buffer;
  #kept: Buffer = NOTHING;

  constructor(channel: Credited) {
    this.#channel = channel;
    this.#secret = secretOf(channel);
  }

  pass(piece: Uint8Array): Uint8Array {
    if (this.#secret.length < SHORTEST) return piece;
    const joined = this.#kept.length === 0 ? piece : Buffer.concat([this.#kept, piece]);
    const clean = withhold(joined, this.#channel);
    const from = clean[clean.length - 1] === NEWLINE ? clean.length : findBeginning(clean, this.#secret);
    this.#kept = from === clean.length ? NOTHING : Buffer.from(clean.subarray(from));
    return from === clean.length ? clean : clean.subarray(0, from);
  }

  /** What still waits when the answer has ended. */
  end(): Uint8Array {
    const kept = this.#kept;
    this.#kept = NOTHING;
    return kept.length < TELLING_LENGTH ? kept : Buffer.alloc(kept.length, "*");
  }
}

/** Where the secret may begin of which the rest has not come; the length where it doesn't. */
function findBeginning(bytes: Uint8Array, secret: Buffer): number {
  const [first = 0] = secret;
  let at = bytes.indexOf(first, Math.max(0, bytes.length - secret.length + 1));
  while (at >= 0 && secret.compare(bytes, at, bytes.length, 0, bytes.length - at) !== 0) {
    at = bytes.indexOf(first, at + 1);
  }
  return at < 0 ? bytes.length : at;
}
