// What no answer, line, log or field may hold: channels' credentials, and a request's key
// or login. Finds texts of 12 characters or more, also escaped or in several chunks.

import type { Catalog, Channel } from "../../config/catalog.ts";
import { KEY_FIELD, OWN_KEY_FIELD } from "../../config/key-fields.ts";
import { queryOf, readKeyParameter } from "../../dialects/path.ts";
import { GatewayError } from "../../lib/errors.ts";
import type { Exchange } from "../../lib/http/exchange.ts";
import type { Field } from "../../lib/http/fields.ts";
import { BoundedMap, remember } from "../../lib/memory/bounded-map.ts";
import { asBuffer, NOTHING } from "../../lib/memory/bytes.ts";
import { sha256Hex } from "../../lib/secret.ts";
import { REMOVED } from "../../lib/text/printable.ts";
import { bareSecret } from "./runs.ts";

/** Where no credential is needed, users write words such as "ollama". Answers have them, too. */
export const MIN_LENGTH = 12;
/** In a header's `Bearer x`, the secret is x. */
const SCHEME = /^(?:basic|bearer|token)\s+/i;
/** A channel's own headers (`headers` in the config) that may hold a secret. */
const SECRET_HEADER = /key|auth|cookie|credential|secret|token/i;
/** All keys of Anthropic begin like this. It is long, and not secret. */
const PUBLIC_PREFIX = /^sk-ant-(?:[a-z]+\d+-)?/;
const MAX_CLEAN = 256;

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

/** Escapes of visible ASCII, as in secrets. */
const ESCAPE = /\\u00([2-7][\da-f])|%([2-7][\da-f])/gi;
const MAY_BE_ESCAPED = /%|\\u00/;
const JSON_ESCAPE = Buffer.from("\\u00");
const PERCENT = 0x25;
/** After an escape, a secret may go on in the next chunk. */
const OPEN_ESCAPE = /[\\%]\S*$/;
const SPACE = 0x20;
const ESCAPE_LENGTH = 6;

function decode(text: string): string {
  return text.replace(ESCAPE, (_, json, percent) =>
    String.fromCharCode(Number.parseInt(json ?? percent, 16)),
  );
}

/** As `keys add` makes it, and its beginning at the end of a cut body. */
const MADE_KEY = "sk-[\\dA-Za-z]{43}";
const CUT_KEY = /sk-[\dA-Za-z]{20,42}$/;
const KEY_LETTER = "[\\w.~+@#$^/=-]";
const MAX_OPEN_KEY = 64;

/** Finds the gateway's keys by their hashes and first letters. */
class KeySearch {
  readonly #keys: Catalog["keysBySha256"];
  readonly #starts: readonly string[];
  readonly #words: RegExp;
  /** At the end of a chunk: the next one may go on with a key. */
  readonly open: RegExp;

  constructor({ keys, keysBySha256 }: Pick<Catalog, "keys" | "keysBySha256">) {
    this.#keys = keysBySha256;
    const given = Array.from(keys.values(), ({ start }) => start);
    this.#starts = [...new Set(["sk-", ...given])].filter(({ length }) => length === 3);
    const starts = this.#starts.map((start) => Array.from(start, (letter) => RegExp.escape(letter)));
    const whole = starts.map((letters) => letters.join("")).join("|");
    this.#words = new RegExp(`${MADE_KEY}|(?:${whole})${KEY_LETTER}{9,253}`, "g");
    const ends = starts.map(([a, b, c]) => `${a}(?:${b}(?:${c}${KEY_LETTER}*)?)?$`);
    this.open = new RegExp(ends.join("|"));
  }

  mayBeIn(text: string | Buffer): boolean {
    return this.#starts.some((start) => text.includes(start));
  }

  *find(bytes: Buffer): Generator<Found> {
    if (!this.mayBeIn(bytes)) return;
    for (const { 0: text, index: start } of bytes.toString("latin1").matchAll(this.#words))
      if (isKey(text, this.#keys)) yield { start, end: start + text.length, text };
  }
}

function spell(text: string): RegExp {
  const codes = Array.from(Buffer.from(text), (code) => code.toString(16).padStart(2, "0"));
  return new RegExp(codes.map((hex) => `(?:\\x${hex}|\\\\u00${hex}|%${hex})`).join(""), "gi");
}

export class Secrets {
  /** Unchanged, and with JSON's escapes of `"`, `\` and `/`. */
  readonly #texts: readonly { readonly text: string; readonly bytes: Buffer }[];
  readonly #longest: number;
  readonly #base: Secrets | null;
  readonly #keys: KeySearch | null;
  readonly #secrets: readonly string[];
  #pieces: ReadonlySet<string> | null = null;
  readonly #clean = new BoundedMap<string, true>(MAX_CLEAN);

  constructor(secrets: Iterable<string>, base: Secrets | null = null, keys: KeySearch | null = null) {
    const long = [...secrets].filter(({ length }) => length >= MIN_LENGTH);
    const written = long.map((text) => JSON.stringify(text).slice(1, -1));
    const slashed = written.map((text) => text.replaceAll("/", "\\/"));
    const own = Array.from(new Set([...long, ...written, ...slashed]), (text) => ({
      text,
      bytes: Buffer.from(text),
    }));
    this.#texts = base === null ? own : [...base.#texts, ...own];
    this.#base = base;
    this.#keys = keys ?? (base === null ? null : base.#keys);
    this.#secrets = long;
    const lengths = this.#texts.map(({ text }) => text.length);
    this.#longest = Math.max(MAX_OPEN_KEY, ...lengths) * ESCAPE_LENGTH;
  }

  /** Asterisks replace each secret: the length may already be sent. */
  mask(bytes: Uint8Array): Uint8Array {
    const found = this.#find(asBuffer(bytes));
    if (found.length === 0) return bytes;
    const clean = Buffer.from(bytes);
    for (const { start, end } of found) clean.fill("*", start, end);
    return clean;
  }

  /** Also masks the beginning of a secret at the end of a cut body. */
  maskCut(bytes: Uint8Array): Uint8Array {
    const clean = Buffer.from(this.mask(bytes));
    const start = Math.max(0, clean.length - this.#longest);
    const end = clean.toString("latin1", start);
    const key = this.#keys === null ? null : CUT_KEY.exec(end);
    const from = start + Math.min(this.#findBeginning(end), key?.index ?? end.length);
    return clean.length - from < MIN_LENGTH ? clean : clean.fill("*", from);
  }

  maskText(text: string): string {
    if (!this.holds(text)) return text;
    // A part may have escapes.
    const plain = decode(asBuffer(this.mask(Buffer.from(text))).toString());
    const units = plain.split("");
    for (const at of this.findParts(plain)) units.fill("*", at, at + MIN_LENGTH);
    return units.join("");
  }

  #hasWhole(text: string): boolean {
    if (text.length < MIN_LENGTH) return false;
    for (const secret of this.#texts) if (text.includes(secret.text)) return true;
    const mayHold = MAY_BE_ESCAPED.test(text) || this.#keys?.mayBeIn(text) === true;
    return mayHold && this.#find(Buffer.from(text)).length > 0;
  }

  /** Also finds secrets in lower case. */
  holds(text: string): boolean {
    if (text.length < MIN_LENGTH || this.#clean.has(text)) return false;
    if (this.findParts(decode(text)).length > 0 || this.#hasWhole(text)) return true;
    if (text.length <= MAX_PLAIN_LENGTH) this.#clean.set(text, true);
    return false;
  }

  findParts(text: string): number[] {
    // The only letter whose lower case is longer.
    const lower = text.replaceAll("\u0130", "i").toLowerCase();
    const found: number[] = [];
    for (let at = 0; at + MIN_LENGTH <= lower.length; at += 1)
      if (this.#isPart(lower.slice(at, at + MIN_LENGTH))) found.push(at);
    return found;
  }

  #isPart(piece: string): boolean {
    this.#pieces ??= new Set(this.#secrets.flatMap(listPieces));
    return this.#pieces.has(piece) || (this.#base !== null && this.#base.#isPart(piece));
  }

  holdsField(name: string, value: string): boolean {
    return this.#hasWhole(name) || this.#hasWhole(value);
  }

  #find(bytes: Buffer): Found[] {
    const found = this.#findTexts(bytes);
    if (!(bytes.includes(JSON_ESCAPE) || bytes.includes(PERCENT))) return found;
    const raw = bytes.toString("latin1");
    const escaped = this.#findTexts(Buffer.from(decode(raw), "latin1"));
    for (const text of new Set(escaped.map((each) => each.text)))
      for (const { 0: match, index } of raw.matchAll(spell(text)))
        found.push({ start: index, end: index + match.length, text });
    return found;
  }

  #findTexts(all: Buffer): Found[] {
    const found = [...(this.#keys?.find(all) ?? [])];
    for (const { text, bytes } of this.#texts)
      for (let start = all.indexOf(bytes); start >= 0; start = all.indexOf(bytes, start + 1))
        found.push({ start, end: start + bytes.length, text });
    return found;
  }

  /** Where an unfinished secret may begin. */
  findOpenEnd(bytes: Buffer): number {
    const { length } = bytes;
    if ((bytes[length - 1] ?? SPACE) <= SPACE) return length;
    const start = Math.max(0, length - this.#longest);
    const text = bytes.toString("latin1", start);
    const plain = text.replace(OPEN_ESCAPE, "");
    const key = this.#keys?.open.exec(text)?.index ?? length;
    return start + Math.min(this.#findBeginning(text), this.#findBeginning(plain), key);
  }

  #findBeginning(end: string): number {
    let least = end.length;
    for (const { text } of this.#texts)
      for (let at = Math.max(0, end.length - text.length + 1); at < least; at += 1)
        if (end[at] === text[0] && text.startsWith(end.slice(at))) least = at;
    return least;
  }
}

export const NO_SECRETS = new Secrets([]);

function listPieces(secret: string): string[] {
  const from = PUBLIC_PREFIX.exec(secret)?.[0].length ?? 0;
  const lower = secret.toLowerCase();
  const count = Math.max(0, lower.length - MIN_LENGTH - from + 1);
  return Array.from({ length: count }, (_, at) => lower.slice(from + at, from + at + MIN_LENGTH));
}

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

  /** A cut body may end inside a secret. */
  end(): Uint8Array {
    return this.#secrets.maskCut(this.#held);
  }
}

const ofChannels = new WeakMap<SecretHolder, Secrets>();

export function channelSecrets(channel: SecretHolder): Secrets {
  return ofChannels.getOrInsertComputed(channel, () => new Secrets(listSecrets(channel)));
}

const WORD = /[^\s,;:=&?/|"'`<>()[\]{}]{4,}/g;
/** A secret may include what stands between words. */
const LONG_WORD = /\S{4,}/g;
/** A client's key, of any gateway or provider. */
const KEY_LIKE = /(?:^|[\s"'=:,;-])sk-[\w-]{8}/;
const MAX_PLAIN = 1000;
const MAX_PLAIN_LENGTH = 256;
const MAX_SENDERS = 64;

/** All channels' credentials, and the gateway's keys, known only by hash. */
export class KnownSecrets {
  readonly #secrets: Secrets;
  readonly #keys: Catalog["keysBySha256"];
  readonly #ofSender = remember(
    MAX_SENDERS,
    (sent) => new Secrets(sent.split("\n"), this.#secrets),
    Infinity,
  );
  readonly #isKey = remember(MAX_SENDERS, (text) => isKey(text, this.#keys), Infinity);
  readonly #plain = new BoundedMap<string, true>(MAX_PLAIN);

  constructor(catalog: Pick<Catalog, "channels" | "keys" | "keysBySha256">) {
    const credentials = [...catalog.channels.values()].flatMap(listSecrets);
    this.#secrets = new Secrets(credentials, null, new KeySearch(catalog));
    this.#keys = catalog.keysBySha256;
  }

  /** `sent`: the request's own, by `listOwnSecrets`. */
  forRequest(sent: readonly string[], login: readonly Field[] | null): Secrets {
    const keys = sent.filter(this.#isKey);
    if (login === null) return this.forSender(keys);
    return this.forSender([...login.map(([, value]) => value.replace(SCHEME, "")), ...keys]);
  }

  forSender(sent: readonly string[]): Secrets {
    return sent.length === 0 ? this.#secrets : this.#ofSender(sent.join("\n"));
  }

  mask(text: string): string {
    return this.#plain.has(text) ? text : this.#maskKeys(this.#secrets.maskText(text));
  }

  #maskKeys(text: string): string {
    return text.replace(LONG_WORD, (long) => {
      if (isKey(long, this.#keys)) return REMOVED;
      return long.replace(WORD, (word) => (word !== long && isKey(word, this.#keys) ? REMOVED : word));
    });
  }

  /** A secret, or what looks like a key, in any spelling. */
  holds(text: string): boolean {
    if (this.#plain.has(text)) return false;
    const isFound = [...new Set([text, decode(text)])].some(
      (each) => this.#secrets.holds(each) || KEY_LIKE.test(each) || this.#maskKeys(each) !== each,
    );
    if (!isFound && text.length <= MAX_PLAIN_LENGTH) this.#plain.set(text, true);
    return isFound;
  }

  /** Masks secrets. Every other byte stays. */
  cleanQuery(query: string): string {
    if (query === "" || this.#plain.has(query)) return query;
    const parts = query.slice(1).split("&");
    const kept = parts.filter((part) => !this.holds(part.replaceAll("+", " ")));
    if (kept.length > 0) return kept.length === parts.length ? query : `?${kept.join("&")}`;
    return "";
  }

  holdsField(name: string, value: string): boolean {
    return this.holds(name) || this.holds(value);
  }
}

/** A key, also at the end of a sentence. */
export function isKey(word: string, keys: Catalog["keysBySha256"]): boolean {
  const bare = word.endsWith(".") ? word.slice(0, -1) : word;
  return keys.has(sha256Hex(word)) || (bare !== word && keys.has(sha256Hex(bare)));
}

const known = new WeakMap<Catalog, KnownSecrets>();

const makeKnown = (catalog: Catalog): KnownSecrets => new KnownSecrets(catalog);

export function secretsOf(catalog: Catalog): KnownSecrets {
  return known.getOrInsertComputed(catalog, makeKnown);
}

type Sent = Pick<Exchange, "fields" | "target">;

const SECRET_FIELD = new RegExp(`${KEY_FIELD.source}|^${OWN_KEY_FIELD}$|cookie|account-id$`);
const isSecretField = remember(MAX_PLAIN, (name) => SECRET_FIELD.test(name));

export function listOwnSecrets({ fields, target }: Sent): string[] {
  const sent: string[] = [];
  for (const [name, value] of fields)
    if (isSecretField(name)) sent.push(bareSecret(value.replace(SCHEME, "")));
  const parameter = readKeyParameter(queryOf(target));
  if (parameter !== null) sent.push(bareSecret(parameter));
  return sent;
}

/** A refused request may have secrets anywhere. Its error repeats none. */
export function cleanError(error: GatewayError, exchange: Sent, catalog: Catalog): GatewayError {
  const own = new Secrets(listOwnSecrets(exchange)).maskText(error.message);
  const message = secretsOf(catalog).mask(own);
  return message === error.message ? error : new GatewayError(error.code, message, error);
}
