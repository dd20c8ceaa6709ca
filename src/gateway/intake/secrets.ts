// What no answer, line, log or field that leaves the gateway may hold: the channels' credentials, and the key or the login
// of a request. Texts of 12 characters or more are found as they are, with escapes of JSON or of URLs on any of their
// characters, and over the ends of chunks.

import type { Reading } from "../../billing/usage.ts";
import type { Catalog, Channel } from "../../config/catalog.ts";
import { queryOf, readKeyParameter } from "../../dialects/path.ts";
import { GatewayError } from "../../lib/errors.ts";
import type { Exchange } from "../../lib/http/exchange.ts";
import { type Field, Fields } from "../../lib/http/fields.ts";
import { parseJson } from "../../lib/json/json.ts";
import { BoundedMap } from "../../lib/memory/bounded-map.ts";
import { asBuffer, NOTHING } from "../../lib/memory/bytes.ts";
import { sha256Hex } from "../../lib/secret.ts";
import { REMOVED } from "../../lib/text/printable.ts";
import { bareSecret } from "./runs.ts";

/** Where no credential is needed, users write shorter words such as "ollama", which answers contain. */
const MIN_LENGTH = 12;
/** `Bearer x` of a header: the secret is x. */
const SCHEME = /^(?:basic|bearer|token)\s+/i;
/** Names of a channel's own headers (`headers` in the config) that may hold a secret. */
const SECRET_HEADER = /key|auth|cookie|credential|secret|token/i;
/** The beginning of every key of Anthropic's is long, and not secret. */
const PUBLIC_PREFIX = /^sk-ant-(?:[a-z]+\d+-)?/;

type SecretHolder = Pick<Channel, "credential" | "headers">;

export function listSecrets({ credential, headers }: SecretHolder): string[] {
  const values = headers.filter(([name]) => SECRET_HEADER.test(name)).map(([, value]) => value);
  return [credential, ...values]
    .map((value) => value.replace(SCHEME, ""))
    .filter(({ length }) => length >= MIN_LENGTH);
}

interface Found {
  readonly start: number;
  readonly end: number;
  readonly text: string;
}

const PLACES = 4096;

function placeOf(first = 0, second = 0): number {
  return (first * 31 + second) & (PLACES - 1);
}

/** Up to this many texts are searched one by one: the runtime finds a single text quickly. */
const FEW = 8;

interface Text {
  readonly text: string;
  readonly bytes: Buffer;
}

/** Finds any of many texts, in time that does not grow with their number: it looks at one place of about ten. By two
 *  bytes, it knows how far the next end of a text must be (Wu and Manber, 1994). */
class Finder {
  readonly #base: Finder | null;
  readonly #texts: readonly Text[];
  readonly #shifts = new Uint8Array(PLACES).fill(MIN_LENGTH - 1);
  readonly #byEnd = new Map<number, Text[]>();

  /** What `base` finds is found, too. */
  constructor(texts: Iterable<string>, base: Finder | null) {
    this.#base = base;
    this.#texts = Array.from(texts, (text) => ({ text, bytes: Buffer.from(text) }));
    for (const { text, bytes } of this.#texts) {
      const { length } = bytes;
      for (let left = 0; left < MIN_LENGTH - 1; left += 1) {
        const place = placeOf(bytes[length - left - 2], bytes[length - left - 1]);
        this.#shifts[place] = Math.min(this.#shifts[place] ?? 0, left);
      }
      const end = placeOf(bytes[length - 2], bytes[length - 1]);
      this.#byEnd.getOrInsertComputed(end, () => []).push({ text, bytes });
    }
  }

  findAll(all: Buffer): Found[] {
    const found = this.#texts.length > FEW ? this.#findMany(all) : this.#findFew(all);
    return this.#base === null ? found : found.concat(this.#base.findAll(all));
  }

  #findFew(all: Buffer): Found[] {
    const found: Found[] = [];
    for (const { text, bytes } of this.#texts)
      for (let start = all.indexOf(bytes); start >= 0; start = all.indexOf(bytes, start + 1))
        found.push({ start, end: start + bytes.length, text });
    return found;
  }

  #findMany(all: Buffer): Found[] {
    const found: Found[] = [];
    const shifts = this.#shifts;
    const { length } = all;
    for (let last = MIN_LENGTH - 1; last < length;) {
      const place = placeOf(all[last - 1], all[last]);
      const shift = shifts[place] ?? 0;
      if (shift === 0)
        for (const { text, bytes } of this.#byEnd.get(place) ?? []) {
          const start = last + 1 - bytes.length;
          if (start >= 0 && all.compare(bytes, 0, bytes.length, start, last + 1) === 0)
            found.push({ start, end: last + 1, text });
        }
      last += Math.max(1, shift);
    }
    return found;
  }
}

/** Of visible ASCII, of which secrets are. */
const ESCAPE = /\\u00([2-7][\da-f])|%([2-7][\da-f])/gi;
const JSON_ESCAPE = Buffer.from("\\u00");
const PERCENT = 0x25;
/** From an escape on, a secret may go on in the next chunk. */
const OPEN_ESCAPE = /[\\%]\S*$/;
const SPACE = 0x20;
const ESCAPE_LENGTH = 6;

function decode(text: string): string {
  return text.replace(ESCAPE, (_, json, percent) =>
    String.fromCharCode(Number.parseInt(json ?? percent, 16)),
  );
}

/** The text with escapes on any of its characters. */
function spell(text: string): RegExp {
  const codes = Array.from(Buffer.from(text), (code) => code.toString(16).padStart(2, "0"));
  return new RegExp(codes.map((hex) => `(?:\\x${hex}|\\\\u00${hex}|%${hex})`).join(""), "gi");
}

function find(bytes: Buffer, finder: Finder): Found[] {
  const found = finder.findAll(bytes);
  if (!bytes.includes(JSON_ESCAPE) && !bytes.includes(PERCENT)) return found;
  const raw = bytes.toString("latin1");
  const escaped = finder.findAll(Buffer.from(decode(raw), "latin1"));
  for (const text of new Set(escaped.map((each) => each.text)))
    for (const { 0: match, index } of raw.matchAll(spell(text)))
      found.push({ start: index, end: index + match.length, text });
  return found;
}

export class Secrets {
  /** As they are, and as JSON has their quotes, backslashes and slashes. */
  readonly #texts: ReadonlySet<string>;
  readonly #secrets: readonly string[];
  readonly #whole: Finder;
  /** Built for the first error. */
  #pieces: Finder | null = null;
  readonly #longest: number;
  readonly #base: Secrets | null;

  /** With those of `base`, which may be many, and are not read again. */
  constructor(secrets: Iterable<string>, base: Secrets | null = null) {
    this.#base = base;
    this.#secrets = [...new Set(secrets)].filter(({ length }) => length >= MIN_LENGTH);
    const written = this.#secrets.map((text) => JSON.stringify(text).slice(1, -1));
    const slashed = written.map((text) => text.replaceAll("/", "\\/"));
    this.#texts = new Set([...this.#secrets, ...written, ...slashed]);
    this.#whole = new Finder(this.#texts, base && base.#whole);
    const lengths = [...this.#texts].map(({ length }) => length * ESCAPE_LENGTH);
    this.#longest = Math.max(base === null ? 0 : base.#longest, ...lengths);
  }

  /** With asterisks in place of each secret: the length may have been sent already. */
  mask(bytes: Uint8Array): Uint8Array {
    return fill(bytes, find(asBuffer(bytes), this.#whole));
  }

  /** The same for parts of secrets, too. */
  maskPieces(bytes: Uint8Array): Uint8Array {
    return fill(bytes, find(asBuffer(bytes), this.#pieceFinder));
  }

  /** Without secrets and their parts: for errors, which may quote a part, and for what is kept. */
  removeFrom(bytes: Uint8Array): Uint8Array {
    const text = asBuffer(bytes);
    const found = find(text, this.#pieceFinder);
    if (found.length === 0) return bytes;
    const parts: Uint8Array[] = [];
    let at = 0;
    for (const { start, end } of found.toSorted((a, b) => a.start - b.start)) {
      if (start > at || parts.length === 0) parts.push(text.subarray(at, start), CREDENTIAL_REMOVED);
      at = Math.max(at, end);
    }
    return Buffer.concat([...parts, text.subarray(at)]);
  }

  remove(text: string): string {
    return this.holds(text) ? asBuffer(this.removeFrom(Buffer.from(text))).toString() : text;
  }

  /** A failure's message reaches clients, the log and `.channels.json`. */
  removeIn<T extends { readonly message: string }>(failure: T): T {
    return { ...failure, message: this.remove(failure.message) };
  }

  /** Whether a text has a secret or a part of one. */
  holds(text: string): boolean {
    return text.length >= MIN_LENGTH && find(Buffer.from(text), this.#pieceFinder).length > 0;
  }

  /** Without the fields that hold one. Nearly all answers have none, and one search shows it. */
  cleanFields(fields: Fields): Fields {
    if (!this.holds(fields.text)) return fields;
    return Fields.of([...fields].filter(([name, value]) => !this.holds(`${name}\n${value}`)));
  }

  /** What a meter has read goes to the ledger and the log. */
  cleanReading(reading: Reading): Reading {
    const { model, rawUsage, tariff, cacheReason, refusal } = reading;
    const kept = [model, rawUsage, ...Object.values(tariff), cacheReason?.because, refusal?.category];
    if (!this.holds(kept.join("\n"))) return reading;
    const usage = this.remove(rawUsage ?? "");
    return {
      ...reading,
      model: model && this.remove(model),
      rawUsage: parseJson(usage) === undefined ? null : usage,
      tariff: {},
      cacheReason: undefined,
      refusal: refusal && { category: null },
    };
  }

  /** Where a secret may begin whose end has not come. The end of an event is in none. */
  findOpenEnd(bytes: Buffer): number {
    const { length } = bytes;
    if ((bytes[length - 1] ?? SPACE) <= SPACE) return length;
    const start = Math.max(0, length - this.#longest);
    const text = bytes.toString("latin1", start);
    const plain = text.replace(OPEN_ESCAPE, "");
    return start + Math.min(this.#findBeginning(text), this.#findBeginning(plain));
  }

  /** Where the longest end of the text begins that is the beginning of a secret. */
  #findBeginning(text: string): number {
    let least = this.#base === null ? text.length : this.#base.#findBeginning(text);
    for (const secret of this.#texts)
      for (let at = Math.max(0, text.length - secret.length + 1); at < least; at += 1)
        if (text[at] === secret[0] && secret.startsWith(text.slice(at))) least = at;
    return least;
  }

  get #pieceFinder(): Finder {
    const listAll = (): string[] => [...this.#texts, ...this.#secrets.flatMap(listPieces)];
    return (this.#pieces ??= new Finder(listAll(), this.#base && this.#base.#pieceFinder));
  }
}

export const NO_SECRETS = new Secrets([]);

/** Names of fields and of tools are in lower case. */
function listPieces(secret: string): string[] {
  const from = PUBLIC_PREFIX.exec(secret)?.[0].length ?? 0;
  const pieces: string[] = [];
  for (let at = from; at + MIN_LENGTH <= secret.length; at += 1)
    pieces.push(secret.slice(at, at + MIN_LENGTH));
  return [...pieces, ...pieces.map((piece) => piece.toLowerCase())];
}

const CREDENTIAL_REMOVED = Buffer.from("[credential removed]");

function fill(bytes: Uint8Array, found: readonly Found[]): Uint8Array {
  if (found.length === 0) return bytes;
  const clean = Buffer.from(bytes);
  for (const { start, end } of found) clean.fill("*", start, end);
  return clean;
}

/** Masks secrets in a body that comes in chunks. */
export class StreamRedactor {
  readonly #secrets: Secrets;
  #held: Uint8Array = NOTHING;

  constructor(secrets: Secrets) {
    this.#secrets = secrets;
  }

  pass(chunk: Uint8Array): Uint8Array {
    const joined = this.#held.length === 0 ? chunk : Buffer.concat([this.#held, chunk]);
    const clean = asBuffer(this.#secrets.mask(joined));
    const end = this.#secrets.findOpenEnd(clean);
    this.#held = end === clean.length ? NOTHING : Buffer.from(clean.subarray(end));
    return end === clean.length ? clean : clean.subarray(0, end);
  }

  /** What is still held when the body ends. It was not a secret. */
  end(): Uint8Array {
    return this.#held;
  }
}

const ofChannels = new WeakMap<SecretHolder, Secrets>();

/** For what a channel says where no request is concerned. */
export function channelSecrets(channel: SecretHolder): Secrets {
  return ofChannels.getOrInsertComputed(channel, () => new Secrets(listSecrets(channel)));
}

const WORD = /[^\s,;:=&?/|"'`<>()[\]{}]{4,}/g;
/** A secret may hold what stands between words. */
const LONG_WORD = /\S{4,}/g;
/** What looks like a client's key, of any gateway or provider. */
const KEY_LIKE = /(?:^|[\s"'=:,;-])sk-[\w-]{8}/;
/** The same names come again and again. */
const MAX_PLAIN = 1000;
const MAX_PLAIN_LENGTH = 256;
/** Keys and logins are few. */
const MAX_SENDERS = 64;

/** The credentials of all channels, and the keys of the gateway, of which only hashes are known. */
export class KnownSecrets {
  readonly #secrets: Secrets;
  readonly #keys: Catalog["keysBySha256"];
  /** With those that came with a request. */
  readonly #bySender = new BoundedMap<string, Secrets>(MAX_SENDERS);
  /** Texts that hold none in any spelling, and nothing that looks like one. */
  readonly #plain = new BoundedMap<string, true>(MAX_PLAIN);

  constructor({ channels, keysBySha256 }: Pick<Catalog, "channels" | "keysBySha256">) {
    this.#secrets = new Secrets([...channels.values()].flatMap(listSecrets));
    this.#keys = keysBySha256;
  }

  /** What the answer to a request may not hold. */
  forRequest({ exchange, login }: { exchange: Sent; login: readonly Field[] | null }): Secrets {
    const own = (login ?? []).map(([, value]) => value.replace(SCHEME, ""));
    const others = listOwnSecrets(exchange);
    const name = [...own, "", ...others].join("\n");
    const known = this.#bySender.get(name);
    if (known !== undefined) return known;
    const sent = [...own, ...others.filter((text) => this.#isKey(text))];
    const secrets = sent.length === 0 ? this.#secrets : new Secrets(sent, this.#secrets);
    this.#bySender.set(name, secrets);
    return secrets;
  }

  /** The text without the words that are secrets. */
  mask(text: string): string {
    if (this.#plain.has(text)) return text;
    return this.#secrets.remove(text).replace(LONG_WORD, (long) => {
      if (this.#isKey(long)) return REMOVED;
      return long.replace(WORD, (word) => (word !== long && this.#isKey(word) ? REMOVED : word));
    });
  }

  holds(text: string): boolean {
    return !this.#isPlain(text) && [text, decode(text)].some((each) => this.mask(each) !== each);
  }

  /** The query without the parameters that hold a secret, or what looks like a key. Every other byte stays. */
  cleanQuery(query: string): string {
    if (query === "" || this.#plain.has(query)) return query;
    const parts = query.slice(1).split("&");
    const kept = parts.filter((part) => this.#isPlain(part.replaceAll("+", " ")));
    if (kept.length > 0) return kept.length === parts.length ? query : `?${kept.join("&")}`;
    return "";
  }

  /** The fields without those that hold a secret, or what looks like a key. Nearly all requests have none of these. */
  cleanFields(fields: Fields): Fields {
    const isClean = ([name, value]: Field): boolean => this.#isPlain(name) && this.#isPlain(value);
    for (const field of fields) if (!isClean(field)) return Fields.of([...fields].filter(isClean));
    return fields;
  }

  #isPlain(text: string): boolean {
    if (this.#plain.has(text)) return true;
    const isPlain = [text, decode(text)].every((each) => !KEY_LIKE.test(each) && this.mask(each) === each);
    if (isPlain && text.length <= MAX_PLAIN_LENGTH) this.#plain.set(text, true);
    return isPlain;
  }

  #isKey(word: string): boolean {
    return this.#keys.has(sha256Hex(word));
  }
}

const known = new WeakMap<Catalog, KnownSecrets>();

export function secretsOf(catalog: Catalog): KnownSecrets {
  return known.getOrInsertComputed(catalog, () => new KnownSecrets(catalog));
}

type Sent = Pick<Exchange, "fields" | "target">;

/** Where a request may have its key, or a login and what belongs to it. */
const SECRET_FIELD = /authorization|api-?key$|^x-gateway-key$|cookie|account-id$/;

/** The key and the login that came with the request, whichever it was let in with. */
export function listOwnSecrets({ fields, target }: Sent): string[] {
  const sent: string[] = [];
  for (const [name, value] of fields)
    if (SECRET_FIELD.test(name)) sent.push(bareSecret(value.replace(SCHEME, "")));
  const parameter = readKeyParameter(queryOf(target));
  return parameter === null ? sent : [...sent, bareSecret(parameter)];
}

/** A request that is refused may have them anywhere. Its error does not repeat them. */
export function cleanError(error: GatewayError, exchange: Sent): GatewayError {
  const message = new Secrets(listOwnSecrets(exchange)).remove(error.message);
  return message === error.message ? error : new GatewayError(error.code, message, error);
}
