// The one place that removes a channel's secrets from what an upstream says. A secret is found in every form in which
// text can carry it: plain, with JSON, URL or HTML escapes on any of its characters, and as base64. In successful bodies
// only whole secrets are removed, in errors and in the gateway's own texts pieces of them too. The work is linear.

import type { Reading } from "../../billing/usage.ts";
import { asBuffer } from "../../lib/memory/bytes.ts";
import { Fields } from "../../lib/http/fields.ts";
import { parseJson } from "../../lib/json/json.ts";
import { isUnmistakable, listSecrets, type SecretHolder } from "../intake/known-secrets.ts";
import {
  type ByteRange,
  compileSecrets,
  findOpenEnd,
  findSecrets,
  mayHold,
  type Patterns,
  type Secret,
} from "./redact-scan.ts";

/** All credentials of a vendor begin with the same prefix. It is not secret. */
const PUBLIC_PREFIX =
  /^(?:sk-ant-(?:[a-z]+\d+-)?|sk-proj-|sk-svcacct-|sk-admin-|sk-or-v\d+-|sk-|AIza(?:Sy)?|ya29\.|xai-|gsk_|pplx-|nvapi-|hf_|ghp_|github_pat_|r8_|fw_|tgp_v\d+_)/;
/** A shorter piece does not give the secret away. */
const MIN_PIECE_LENGTH = 12;
/** Where an error has shown one piece, it may show the others: of this length. */
const MIN_FURTHER_LENGTH = 6;

interface Redaction {
  readonly secrets: readonly Secret[];
  readonly whole: Patterns;
  readonly pieces: Patterns;
  readonly inAnyCase: readonly Secret[];
  /** For an error that shows a piece. Built when there is one. */
  further: Patterns | null;
  /** For the names of header fields, which are read in lower case. */
  readonly names: Patterns;
  /** For what is kept: pieces of those secrets that are no words. */
  readonly namePieces: Patterns;
  /** Names that hold no piece, so that they are searched once. */
  readonly plain: Set<string>;
}

const redactions = new WeakMap<SecretHolder, Redaction>();

/** Builds what finds the channel's secrets, so that no request waits for it. */
export function prepareRedaction(channel: SecretHolder): void {
  redactionOf(channel);
}

function redactionOf(channel: SecretHolder): Redaction {
  const known = redactions.get(channel);
  if (known !== undefined) return known;
  const secrets = listSecrets(channel).map(readPrefix);
  const distinct = secrets.filter(({ text }) => isUnmistakable(text));
  const changed = distinct.flatMap(changeCase);
  const inAnyCase = [...secrets, ...changed];
  const pieces = compileSecrets(inAnyCase, MIN_PIECE_LENGTH);
  const hasWords = distinct.length < secrets.length;
  const redaction: Redaction = {
    secrets,
    whole: compileSecrets(distinct, null),
    pieces,
    inAnyCase,
    further: null,
    names: compileSecrets(distinct.map(toLowerCase), null),
    namePieces: hasWords ? compileSecrets([...distinct, ...changed], MIN_PIECE_LENGTH) : pieces,
    plain: new Set<string>(),
  };
  redactions.set(channel, redaction);
  return redaction;
}

function readPrefix(text: string): Secret {
  return { text, publicLength: PUBLIC_PREFIX.exec(text)?.[0].length ?? 0 };
}

function toLowerCase({ text, publicLength }: Secret): Secret {
  return { text: text.toLowerCase(), publicLength };
}

function changeCase({ text, publicLength }: Secret): Secret[] {
  return [text.toLowerCase(), text.toUpperCase()]
    .filter((changed) => changed !== text)
    .map((changed) => ({ text: changed, publicLength }));
}

const REMOVED = Buffer.from("[credential removed]");

/** Removes the secrets that an error quotes: whole, in pieces, or with their middle masked. */
export function redactError(bytes: Uint8Array, channel: SecretHolder): Uint8Array {
  const redaction = redactionOf(channel);
  const { secrets, pieces, inAnyCase } = redaction;
  const text = asBuffer(bytes);
  const found = [...findSecrets(text, pieces), ...findMasked(text, secrets)];
  if (found.length === 0) return bytes;
  redaction.further ??= compileSecrets(inAnyCase, MIN_FURTHER_LENGTH);
  found.push(...findSecrets(text, redaction.further));
  const parts: Uint8Array[] = [];
  let at = 0;
  for (const { start, end } of found.toSorted((a, b) => a.start - b.start)) {
    if (start > at || parts.length === 0) parts.push(text.subarray(at, start), REMOVED);
    at = Math.max(at, end);
  }
  return Buffer.concat([...parts, text.subarray(at)]);
}

const MASK = /(?:\*|\xe2\x80\xa2|\\{1,8}u2022){2,}|\.{3,}|\xe2\x80\xa6|\\{1,8}u2026/g;
/** How many of a secret's first or last characters are compared beside a mask. */
const MAX_EDGE_LENGTH = 24;
/** Fewer matching characters beside a mask are a coincidence. */
const MIN_EDGES_LENGTH = 4;

/** Finds `sk-abc***wxyz`: a mask with the secret's beginning before it, its end after it, or both. */
function findMasked(bytes: Buffer, secrets: readonly Secret[]): ByteRange[] {
  const found: ByteRange[] = [];
  for (const mask of bytes.toString("latin1").matchAll(MASK)) {
    const end = mask.index + mask[0].length;
    for (const { text, publicLength } of secrets) {
      const most = Math.min(text.length, publicLength + MAX_EDGE_LENGTH);
      const before = measure(most, (size) => isAt(bytes, mask.index - size, text, { from: 0, to: size }));
      const last = Math.min(text.length, MAX_EDGE_LENGTH);
      const to = text.length;
      const after = measure(last, (size) => isAt(bytes, end, text, { from: to - size, to }));
      if (Math.max(0, before - publicLength) + after < MIN_EDGES_LENGTH) continue;
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

/** True if the bytes at `at` are the part of the text from `from` to `to`. */
function isAt(bytes: Buffer, at: number, text: string, { from, to }: { from: number; to: number }): boolean {
  if (at < 0) return false;
  for (let index = from; index < to; index += 1) {
    if (bytes[at + index - from] !== text.charCodeAt(index)) return false;
  }
  return true;
}

const TEXT_LITERAL = /"(?:[^"\\]|\\.)*"/g;

/** Redacts a whole error body. The texts of a JSON body are also searched after decoding, because JSON's escapes may
 *  hide further escapes. Everything else stays byte for byte. */
export function redactErrorBody(bytes: Uint8Array, channel: SecretHolder): Uint8Array {
  const clean = redactError(bytes, channel);
  const body = asBuffer(clean).toString();
  if (!body.includes("\\")) return clean;
  const redacted = body.replace(TEXT_LITERAL, (literal) => redactLiteral(literal, channel));
  return redacted === body ? clean : Buffer.from(redacted);
}

function redactLiteral(literal: string, channel: SecretHolder): string {
  const text = literal.includes("\\") ? parseJson(literal) : undefined;
  if (typeof text !== "string") return literal;
  const redacted = redactText(text, channel);
  return redacted === text ? literal : JSON.stringify(redacted);
}

/** Redacts a text that was decoded from a response. What was escaped there is plain here. */
export function redactText(text: string, channel: SecretHolder): string {
  const bytes = Buffer.from(text);
  const clean = redactError(bytes, channel);
  return clean === bytes ? text : asBuffer(clean).toString();
}

/** A failure's message reaches clients, the log and `.channels.json`. It was escaped in the upstream's response. */
export function redactFailure<T extends { readonly message: string }>(failure: T, channel: SecretHolder): T {
  return { ...failure, message: redactText(failure.message, channel) };
}

/** Masks whole secrets in a successful body. The length stays, because it may have been sent already. */
export function redactBody(bytes: Uint8Array, channel: SecretHolder): Uint8Array {
  return mask(bytes, findSecrets(asBuffer(bytes), redactionOf(channel).whole));
}

/** The same for what is kept: pieces of secrets that are no words, too. */
export function redactPieces(bytes: Uint8Array, channel: SecretHolder): Uint8Array {
  return mask(bytes, findSecrets(asBuffer(bytes), redactionOf(channel).namePieces));
}

function mask(bytes: Uint8Array, found: readonly ByteRange[]): Uint8Array {
  if (found.length === 0) return bytes;
  const clean = Buffer.from(bytes);
  for (const { start, end } of found) clean.fill("*", start, end);
  return clean;
}

/** Whether a text holds a secret, whole or a piece of it. */
export function holdsSecret(text: string, channel: SecretHolder): boolean {
  const { pieces } = redactionOf(channel);
  return holds(text, pieces);
}

function holds(text: string, patterns: Patterns): boolean {
  return mayHold(text, patterns) && findSecrets(Buffer.from(text), patterns).length > 0;
}

const MAX_PLAIN_NAMES = 1000;
const MAX_PLAIN_LENGTH = 64;

/** True for a name, such as a model's, that holds no piece of a secret. Names come again and again. */
function isPlainName(name: string, { plain, namePieces }: Redaction): boolean {
  if (name.length < MIN_PIECE_LENGTH) return true; // a whole secret of this length was removed from the body
  if (plain.has(name)) return true;
  if (holds(name, namePieces)) return false;
  if (plain.size < MAX_PLAIN_NAMES && name.length <= MAX_PLAIN_LENGTH) plain.add(name);
  return true;
}

/** Removes the header fields that hold a secret. */
export function redactFields(fields: Fields, channel: SecretHolder, status: number): Fields {
  const { whole, pieces, names } = redactionOf(channel);
  const patterns = status < 400 ? whole : pieces;
  const isClean = (text: string): boolean => !holds(text, patterns) && !holds(text, names);
  // Nearly all responses have nothing to remove, and one search of all fields shows it.
  if (isClean(fields.text)) return fields;
  return Fields.of([...fields].filter(([name, value]) => isClean(`${name}\n${value}`)));
}

const NOTHING = Buffer.alloc(0);

/** Redacts a body that comes in chunks. If the end of a chunk may be the beginning of a secret, it is held until the
 *  next chunk. The end of an event is never held, because no secret contains a line end. */
export class StreamRedactor {
  readonly #patterns: Patterns;
  #held: Uint8Array = NOTHING;

  constructor(channel: SecretHolder, status: number) {
    const { whole, pieces } = redactionOf(channel);
    this.#patterns = status < 400 ? whole : pieces;
  }

  pass(chunk: Uint8Array): Uint8Array {
    const joined = asBuffer(this.#held.length === 0 ? chunk : Buffer.concat([this.#held, chunk]));
    const found = findSecrets(joined, this.#patterns);
    const holdFrom = findOpenEnd(joined, this.#patterns, found.at(-1)?.end ?? 0);
    const clean = mask(joined, found);
    if (holdFrom === clean.length) {
      this.#held = NOTHING;
      return clean;
    }
    this.#held = Buffer.from(clean.subarray(holdFrom));
    return clean.subarray(0, holdFrom);
  }

  /** The bytes that are still held when the body ends. They were not a secret. */
  end(): Uint8Array {
    const held = this.#held;
    this.#held = NOTHING;
    return held;
  }
}

/** No usage is nested this deeply. */
const MAX_USAGE_DEPTH = 16;

/** What a meter has read goes to the ledger and the log, so pieces of a secret are removed there too. Returns the same
 *  object if nothing in it holds one. */
export function redactReading(reading: Reading, channel: SecretHolder): Reading {
  const { model, rawUsage, tariff, cacheReason, refusal } = reading;
  const redaction = redactionOf(channel);
  const isPlain = (value: unknown): boolean => isClean(value, redaction, MAX_USAGE_DEPTH);
  if (isPlain(model) && isPlain(rawUsage) && isPlain(tariff) && isPlain(cacheReason) && isPlain(refusal))
    return reading;
  return {
    ...reading,
    model: model === null || isPlain(model) ? model : redactText(model, channel),
    rawUsage: isPlain(rawUsage) ? rawUsage : redactUsage(rawUsage, channel),
    tariff: isPlain(tariff) ? tariff : {},
    cacheReason: isPlain(cacheReason) ? cacheReason : undefined,
    refusal: isPlain(refusal) ? refusal : { category: null },
  };
}

function isClean(value: unknown, redaction: Redaction, depth: number): boolean {
  if (typeof value === "string") return isPlainName(value, redaction);
  if (typeof value !== "object" || value === null) return true;
  if (depth === 0) return false;
  // Parsed JSON has no inherited members. A list of its entries would cost most of this.
  for (const name in value) {
    const each: unknown = Reflect.get(value, name);
    if (!isPlainName(name, redaction) || !isClean(each, redaction, depth - 1)) return false;
  }
  return true;
}

/** Null if it is not JSON without a secret then. */
function redactUsage(rawUsage: string | null, channel: SecretHolder): string | null {
  const text = redactText(rawUsage ?? "null", channel);
  const clean = parseJson(text);
  const isUsable = clean !== undefined && isClean(clean, redactionOf(channel), MAX_USAGE_DEPTH);
  return isUsable ? text : null;
}
