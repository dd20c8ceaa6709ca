// The one place that removes a channel's secrets from what an upstream says. A secret is found in every form in which
// text can carry it: plain, with JSON, URL or HTML escapes on any of its characters, and as base64. Successful bodies
// lose only whole secrets. Errors and the gateway's own texts lose pieces of them too. The work is linear in the input.

import type { Channel } from "../../config/catalog.ts";
import { asBuffer } from "../../lib/bytes.ts";
import type { Field } from "../../lib/http1/types.ts";
import { compileSecrets, scan, type Patterns, type Secret, type Stretch } from "./redact-scan.ts";

type Owner = Pick<Channel, "credential" | "headers">;

/** Every credential of a vendor begins so: it is no part of the secret. */
const PUBLIC_PREFIX =
  /^(?:sk-ant-(?:[a-z]+\d+-)?|sk-proj-|sk-svcacct-|sk-admin-|sk-or-v\d+-|sk-|AIza(?:Sy)?|ya29\.|xai-|gsk_|pplx-|nvapi-|hf_|ghp_|github_pat_|r8_|fw_|tgp_v\d+_)/;
/** `Bearer x` of a header: the secret is x. */
const SCHEME = /^(?:basic|bearer|token)\s+/i;
/** A channel's own headers whose names say that they hold a secret. */
const SECRET_HEADER = /key|auth|cookie|credential|secret|token/i;

/** A shorter piece of a secret does not give it away. */
const PIECE_LENGTH = 12;
/** Shorter ones are words such as "no". */
const SHORTEST = 4;
/** Words such as "ollama" and "lm-studio" stand in for a credential where none is needed, and answers use them. With a
 *  digit in it, or this long, it is no such word. */
const SHORTEST_WITH_DIGIT = 8;
const SHORTEST_WORD = 12;

interface Redaction {
  readonly secrets: readonly Secret[];
  readonly whole: Patterns;
  readonly pieces: Patterns;
}

const redactions = new WeakMap<Owner, Redaction>();

function redactionOf(channel: Owner): Redaction {
  const known = redactions.get(channel);
  if (known !== undefined) return known;
  const secrets = listSecrets(channel);
  const distinct = secrets.filter(({ text }) => isDistinct(text));
  const redaction = {
    secrets,
    whole: compileSecrets(distinct, null),
    pieces: compileSecrets(secrets, PIECE_LENGTH),
  };
  redactions.set(channel, redaction);
  return redaction;
}

function listSecrets({ credential, headers }: Owner): Secret[] {
  const values = headers.filter(([name]) => SECRET_HEADER.test(name)).map(([, value]) => value);
  const texts = [credential, ...values].map((value) => value.replace(SCHEME, ""));
  return [...new Set(texts)]
    .filter((text) => text.length >= SHORTEST)
    .map((text) => ({ text, publicLength: PUBLIC_PREFIX.exec(text)?.[0].length ?? 0 }));
}

function isDistinct(text: string): boolean {
  return text.length >= (/\d/.test(text) ? SHORTEST_WITH_DIGIT : SHORTEST_WORD);
}

const REMOVED = Buffer.from("[credential removed]");

/** An error without the secrets that it quotes: whole, in pieces, or with their middle masked. */
export function redactError(bytes: Uint8Array, channel: Owner): Uint8Array {
  const { secrets, pieces } = redactionOf(channel);
  const text = asBuffer(bytes);
  const found = [...scan(text, pieces).found, ...findMasked(text, secrets)];
  if (found.length === 0) return bytes;
  const kept: Uint8Array[] = [];
  let at = 0;
  for (const { start, end } of found.toSorted((a, b) => a.start - b.start)) {
    if (start > at || kept.length === 0) kept.push(text.subarray(at, start), REMOVED);
    at = Math.max(at, end);
  }
  return Buffer.concat([...kept, text.subarray(at)]);
}

const MASK = /(?:\*|\xe2\x80\xa2|\\{1,8}u2022){2,}|\.{3,}|\xe2\x80\xa6|\\{1,8}u2026/g;
/** So many of a secret's first or last characters are looked for beside a mask. */
const LONGEST_EDGE = 24;
/** A mask with fewer secret characters beside it may stand beside anything. */
const SHORTEST_EDGES = 4;

/** `sk-abc***wxyz`: a mask with the secret's beginning before it, its end after it, or both. */
function findMasked(bytes: Buffer, secrets: readonly Secret[]): Stretch[] {
  const found: Stretch[] = [];
  for (const mask of bytes.toString("latin1").matchAll(MASK)) {
    const end = mask.index + mask[0].length;
    for (const { text, publicLength } of secrets) {
      const most = Math.min(text.length, publicLength + LONGEST_EDGE);
      const before = measure(most, (size) => isAt(bytes, mask.index - size, text, { from: 0, to: size }));
      const last = Math.min(text.length, LONGEST_EDGE);
      const to = text.length;
      const after = measure(last, (size) => isAt(bytes, end, text, { from: to - size, to }));
      if (Math.max(0, before - publicLength) + after < SHORTEST_EDGES) continue;
      found.push({ start: mask.index - before, end: end + after });
    }
  }
  return found;
}

function measure(most: number, isShared: (size: number) => boolean): number {
  let size = most;
  while (size > 0 && !isShared(size)) size -= 1;
  return size;
}

/** True when a part of the text stands at an offset of the bytes. */
function isAt(bytes: Buffer, at: number, text: string, { from, to }: { from: number; to: number }): boolean {
  if (at < 0) return false;
  for (let index = from; index < to; index += 1) {
    if (bytes[at + index - from] !== text.charCodeAt(index)) return false;
  }
  return true;
}

/** The same for a text that has been read out of an answer: what was escaped there is plain here. */
export function redactText(text: string, channel: Owner): string {
  const bytes = Buffer.from(text);
  const clean = redactError(bytes, channel);
  return clean === bytes ? text : asBuffer(clean).toString();
}

/** A failure is shown to clients and in the log, and is kept. Its message was escaped in the upstream's answer. */
export function redactFailure<T extends { readonly message: string }>(failure: T, channel: Owner): T {
  return { ...failure, message: redactText(failure.message, channel) };
}

/** A successful body without whole secrets. It stays as long as it was: its length may have been sent already. */
export function redactBody(bytes: Uint8Array, channel: Owner): Uint8Array {
  return mask(bytes, scan(asBuffer(bytes), redactionOf(channel).whole).found);
}

function mask(bytes: Uint8Array, found: readonly Stretch[]): Uint8Array {
  if (found.length === 0) return bytes;
  const clean = Buffer.from(bytes);
  for (const { start, end } of found) clean.fill("*", start, end);
  return clean;
}

/** An answer's header fields without those that hold a secret. */
export function redactFields(fields: Field[], channel: Owner, status: number): Field[] {
  const { whole, pieces } = redactionOf(channel);
  const patterns = status < 400 ? whole : pieces;
  const isClean = ([, value]: Field): boolean => scan(Buffer.from(value), patterns).found.length === 0;
  return fields.every(isClean) ? fields : fields.filter(isClean);
}

const NOTHING = Buffer.alloc(0);

/** Redacts a body that comes in chunks, wherever they are cut: the end of a chunk that may begin a secret waits for
 *  the next chunk. The end of an event never waits, because no secret contains a line's end. */
export class StreamRedactor {
  readonly #patterns: Patterns;
  #held: Uint8Array = NOTHING;

  constructor(channel: Owner, status: number) {
    const { whole, pieces } = redactionOf(channel);
    this.#patterns = status < 400 ? whole : pieces;
  }

  pass(chunk: Uint8Array): Uint8Array {
    const joined = this.#held.length === 0 ? chunk : Buffer.concat([this.#held, chunk]);
    const { found, holdFrom } = scan(asBuffer(joined), this.#patterns);
    const clean = mask(joined, found);
    if (holdFrom === clean.length) {
      this.#held = NOTHING;
      return clean;
    }
    this.#held = Buffer.from(clean.subarray(holdFrom));
    return clean.subarray(0, holdFrom);
  }

  /** What still waits when the body has ended: it was not a secret. */
  end(): Uint8Array {
    const held = this.#held;
    this.#held = NOTHING;
    return held;
  }
}
