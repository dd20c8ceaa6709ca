// What no answer, line, log or field may hold: channels' credentials, keys and logins.
// Finds texts of 12 characters or more, also escaped or in several chunks.

import type { Catalog, Channel } from "../../config/catalog.ts";
import type { Field } from "../../lib/http/fields.ts";
import { BoundedMap, remember } from "../../lib/memory/bounded-map.ts";
import { asBuffer, hasText, joinChunks, NOTHING } from "../../lib/memory/bytes.ts";
import { sha256Hex } from "../../lib/secret.ts";
import { nextTurn } from "../../lib/time/next-turn.ts";

/** Shorter credentials are words such as "ollama", which answers may contain. */
export const MIN_LENGTH = 12;
/** All that looks like a key is longer. */
const MAX_HARMLESS = 10;
const SCHEME = /^(?:basic|bearer|token)\s+/i;
const SECRET_HEADER = /key|auth|cookie|credential|secret|token/i;
/** All keys of Anthropic begin like this, which is not secret. */
const PUBLIC_PREFIX = /^sk-ant-(?:[a-z]+\d+-)?/;
const MAX_CLEAN = 256;

export const bareValue = (value: string): string => value.replace(SCHEME, "");
const isLong = ({ length }: string): boolean => length >= MIN_LENGTH;

type SecretHolder = Pick<Channel, "credential" | "headers">;

export function listSecrets({ credential, headers }: SecretHolder): string[] {
  const values = headers.filter(([name]) => SECRET_HEADER.test(name)).map(([, value]) => value);
  return [credential, ...values].map(bareValue).filter(isLong);
}

/** Escapes of visible ASCII, of which secrets consist. */
const ESCAPE = /\\u00([2-7][\da-f])|%([2-7][\da-f])/gi;
const OPEN_ESCAPE = /^(?:%[2-7]?|\\(?:u(?:0(?:0[2-7]?)?)?)?)?$/;
const JSON_ESCAPE = "\\u00";
const ESCAPE_LENGTH = 6;
const [PERCENT, BACKSLASH, SPACE] = [0x25, 0x5c, 0x20] as const;

function decode(text: string): string {
  return text.replace(ESCAPE, (_, json, percent) =>
    String.fromCharCode(Number.parseInt(json ?? percent, 16)),
  );
}

const DIGITS = Float64Array.from({ length: 256 }, (_, code) => Number(`0x${String.fromCharCode(code)}`));

/** Returns a letter's code + 256 × its length: 3 or 6 if it is escaped. */
function readLetter(text: string, at: number): number {
  const first = text.charCodeAt(at);
  const length = first === PERCENT ? 3 : first === BACKSLASH ? 6 : 1;
  if (length === 1 || (length > 3 && !text.startsWith(JSON_ESCAPE, at))) return first + 256;
  const high = DIGITS[text.charCodeAt(at + length - 2)] ?? NaN;
  const low = DIGITS[text.charCodeAt(at + length - 1)] ?? NaN;
  return high >= 2 && high < 8 && low >= 0 ? 16 * high + low + 256 * length : first + 256;
}

type Keys = Catalog["keysBySha256"];
/** A key as `keys add` makes it. */
const MADE_KEY = /^sk-[\dA-Za-z]{43}$/;
const MADE_START = "sk-";
const MADE_LENGTH = 46;
/** A cut body's end is masked if it has this much of a key. Less may be a word. */
const MIN_CUT_KEY = 23;
/** State: no secret begins like this text. */
const LOST = -1;
const MAX_STARTS = 16;
/** How long an unfinished start can be:
 *  two escaped letters, and a third without its last byte. */
const MAX_OPEN_START = 17;

function isMade(letter: number, count: number): boolean {
  if (count <= MADE_START.length) return letter === MADE_START.charCodeAt(count - 1);
  const isPlain = (letter >= 0x30 && letter < 0x3a) || ((letter | 0x20) > 0x60 && (letter | 0x20) < 0x7b);
  return isPlain && count <= MADE_LENGTH;
}

interface Scan {
  readonly text: string;
  readonly found: (readonly [start: number, end: number])[];
  /** `open`: where an unfinished secret may begin. `cut`:
   *  the same if the body is cut here. */
  open: number;
  cut: number;
}

function noteOpen(scan: Scan, start: number, at: number, least: number): void {
  if (at + ESCAPE_LENGTH <= scan.text.length || !OPEN_ESCAPE.test(scan.text.slice(at))) return;
  scan.open = Math.min(scan.open, start);
  if (at - start >= least) scan.cut = Math.min(scan.cut, start);
}

/** Finds secrets: text that begins like a secret is read letter by letter. */
export class Secrets {
  readonly #secrets: readonly string[];
  readonly #base: Secrets | null;
  readonly #keys: Keys;
  #starts = new Set<string>();
  /** A state and the next letter lead to a state. */
  readonly #next = new Map<number, number>();
  readonly #ends = new Set<number>();
  #pieces: ReadonlySet<string> | null = null;
  protected readonly likely: RegExp = /(?!)/;
  readonly #clean = new BoundedMap<string, number>(MAX_CLEAN);

  constructor(secrets: readonly string[], base: Secrets | null = null, keys: Keys = new Map()) {
    this.#secrets = secrets.filter(isLong);
    this.#base = base;
    this.#keys = keys;
    if (keys.size > 0) this.#starts.add(MADE_START);
    this.add(secrets.filter((text) => base?.finds(text) !== true));
  }

  finds(text: string): boolean {
    const { found } = this.scan(Buffer.from(text), true);
    return found.some(([start, end]) => start === 0 && end === text.length);
  }

  add(texts: readonly string[]): void {
    for (const text of texts.filter(isLong)) {
      const written = JSON.stringify(text).slice(1, -1);
      // If a secret ends with the start of an escape, digits after it would complete the escape.
      const forms = [text, text.replace(/(?:%[2-7]?|\\)$/, ""), written, written.replaceAll("/", "\\/")];
      // The search decodes all escapes.
      const read = new Set([...forms, ...forms.map(decode)].filter(isLong));
      for (const form of read) this.#learn(Buffer.from(form));
    }
    if (this.#starts.size > MAX_STARTS)
      this.#starts = new Set(Array.from(this.#starts, ([first = ""]) => first));
  }

  #learn(letters: Buffer): void {
    let state = 0;
    for (const letter of letters)
      state = this.#next.getOrInsertComputed((state << 8) | letter, () => this.#next.size + 1);
    this.#ends.add(state);
    this.#starts.add(letters.toString("latin1", 0, MADE_START.length));
  }

  mayHold(text: string | Buffer): boolean {
    if (this.#base?.mayHold(text) === true) return true;
    for (const start of this.#starts) if (hasText(text, start)) return true;
    return this.#starts.size > 0 && (hasText(text, "%") || hasText(text, JSON_ESCAPE));
  }

  /** Unless `hasEnd`, a secret may go on in the next bytes. */
  scan(bytes: Buffer, hasEnd = false): Scan {
    const { length } = bytes;
    const text = bytes.toString("latin1");
    const scan = this.#base?.scan(bytes, hasEnd) ?? { text, found: [], open: length, cut: length };
    if (this.#starts.size === 0) return scan;
    for (const escape of ["%", JSON_ESCAPE]) this.#readAll(scan, escape, 2);
    for (const start of this.#starts) this.#readAll(scan, start, 0);
    for (let at = hasEnd ? length : Math.max(0, length - MAX_OPEN_START); at < length; at += 1)
      this.#read(scan, at);
    return scan;
  }

  #readAll(scan: Scan, wanted: string, before: number): void {
    for (let at = scan.text.indexOf(wanted); at >= 0; at = scan.text.indexOf(wanted, at + 1))
      for (let start = Math.max(0, at - before); start <= at; start += 1) this.#read(scan, start);
  }

  #read(scan: Scan, start: number): void {
    const { text } = scan;
    let at = start;
    let state = 0;
    let mayBeKey = this.#keys.size > 0;
    for (let count = 1; state !== LOST || mayBeKey; count += 1) {
      noteOpen(scan, start, at, state === LOST ? MIN_CUT_KEY : MIN_LENGTH);
      if (at >= text.length) return;
      const read = readLetter(text, at);
      const letter = read & 0xff;
      at += read >> 8;
      state = this.#next.get((state << 8) | letter) ?? LOST;
      if (this.#ends.has(state)) scan.found.push([start, at]);
      mayBeKey &&= isMade(letter, count);
      // The whole key has to be read, because only its hash is known.
      const isWhole = mayBeKey && count === MADE_LENGTH;
      if (isWhole && this.#keys.has(sha256Hex(decode(text.slice(start, at))))) scan.found.push([start, at]);
    }
  }

  /** If the body is cut, also masks the beginning of a secret at the body's end. */
  mask(bytes: Uint8Array, isCut = false): Uint8Array {
    const all = asBuffer(bytes);
    if (!isCut && !this.mayHold(all)) return bytes;
    const { found, cut } = this.scan(all, !isCut);
    return cover(all, isCut ? [...found, [cut, all.length]] : found);
  }

  maskInTurns(bytes: Uint8Array, isCut = false): Uint8Array | Promise<Uint8Array> {
    if (bytes.length <= SLICE_BYTES) return this.mask(bytes, isCut);
    const body = new StreamRedactor(this);
    return Promise.resolve(body.passInTurns(bytes)).then((clean) => joinChunks([clean, body.end(isCut)]));
  }

  maskText(text: string): string {
    if (!this.holds(text)) return text;
    // A part of a secret may be escaped.
    const plain = decode(asBuffer(this.mask(Buffer.from(text))).toString());
    const units = plain.split("");
    for (const at of this.findParts(plain)) units.fill("*", at, at + MIN_LENGTH);
    const clean = units.join("");
    return clean === decode(text) ? text : clean;
  }

  hasWhole(text: string): boolean {
    return isLong(text) && this.mayHold(text) && this.scan(Buffer.from(text), true).found.length > 0;
  }

  /** Also finds parts, and secrets in lower case or escaped twice. */
  holds(text: string): boolean {
    if (text.length <= MAX_HARMLESS) return false;
    const size = this.#next.size + (this.#base === null ? 0 : this.#base.#next.size);
    if (this.#clean.get(text) === size) return false;
    const isFound = [...new Set([text, decode(text)])].some(
      (each) => this.hasWhole(each) || this.likely.test(each) || this.findParts(decode(each)).length > 0,
    );
    if (!isFound && text.length <= MAX_CLEAN) this.#clean.set(text, size);
    return isFound;
  }

  findParts(text: string): number[] {
    // U+0130 is the only letter whose lower case is longer.
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
}

function cover(bytes: Buffer, found: Scan["found"]): Buffer {
  const clean = Buffer.from(bytes);
  for (const [start, end] of found) clean.fill("*", start, end);
  return clean;
}

export const NO_SECRETS = new Secrets([]);

function listPieces(secret: string): string[] {
  const from = PUBLIC_PREFIX.exec(secret)?.[0].length ?? 0;
  const lower = secret.toLowerCase();
  const count = Math.max(0, lower.length - MIN_LENGTH - from + 1);
  return Array.from({ length: count }, (_, at) => lower.slice(from + at, from + at + MIN_LENGTH));
}

const SLICE_BYTES = 16 * 1024;
/** If more bytes are held, they are read again only when they have doubled. */
const MAX_READ_AGAIN = 512;

export class StreamRedactor {
  readonly #secrets: Secrets;
  /** Held back, because a secret may begin here. */
  #held: Buffer = NOTHING;
  #readBytes = 0;

  constructor(secrets: Secrets) {
    this.#secrets = secrets;
  }

  pass(chunk: Uint8Array): Uint8Array {
    const isOpen = (chunk[chunk.length - 1] ?? SPACE) >= SPACE;
    if (!isOpen && this.#held.length === 0 && !this.#secrets.mayHold(asBuffer(chunk))) return chunk;
    const bytes = asBuffer(joinChunks(this.#held.length === 0 ? [chunk] : [this.#held, chunk]));
    if (isOpen && this.#readBytes > MAX_READ_AGAIN && bytes.length < 2 * this.#readBytes) {
      this.#held = bytes;
      return NOTHING;
    }
    // Even without a whole start of a secret, `bytes` may end with a part of one.
    const from = this.#secrets.mayHold(bytes) ? 0 : Math.max(0, bytes.length - MAX_OPEN_START);
    const { found, open } = this.#secrets.scan(bytes.subarray(from));
    const clean = found.length === 0 ? bytes : cover(bytes, found);
    this.#readBytes = bytes.length - from - open;
    this.#held = Buffer.from(clean.subarray(from + open));
    return this.#readBytes === 0 ? clean : clean.subarray(0, from + open);
  }

  passInTurns(chunk: Uint8Array): Uint8Array | Promise<Uint8Array> {
    const isShort = chunk.length <= SLICE_BYTES || !this.#secrets.mayHold(asBuffer(chunk));
    return isShort ? this.pass(chunk) : this.#passSlices(chunk);
  }

  async #passSlices(chunk: Uint8Array): Promise<Uint8Array> {
    const pieces: Uint8Array[] = [];
    for (let at = 0; at < chunk.length; at += SLICE_BYTES) {
      pieces.push(this.pass(chunk.subarray(at, at + SLICE_BYTES)));
      await nextTurn();
    }
    return Buffer.concat(pieces);
  }

  /** A cut body may end inside a secret. */
  end(isCut = true): Uint8Array {
    return this.#secrets.mask(this.#held, isCut);
  }
}

const ofChannels = new WeakMap<SecretHolder, Secrets>();

export function channelSecrets(channel: SecretHolder): Secrets {
  return ofChannels.getOrInsertComputed(channel, () => new Secrets(listSecrets(channel)));
}

const MAX_SENDERS = 64;
/** Clients' keys that `keys add` did not make.
 *  The config may have only their hashes. */
const brought = new BoundedMap<string, true>(1000);

export class KnownSecrets extends Secrets {
  /** What looks like a key of any gateway or provider. */
  protected override readonly likely = /(?:^|[\s"'=:,;-])sk-[\w-]{8}/;
  readonly #isKnown = remember(MAX_SENDERS, (text) => this.finds(text), Infinity);
  readonly #ofSender = remember(MAX_SENDERS, (sent) => new Secrets(sent.split("\n"), this), Infinity);

  constructor({ channels, keys, keysBySha256 }: Pick<Catalog, "channels" | "keys" | "keysBySha256">) {
    super([...channels.values()].flatMap(listSecrets), null, keysBySha256);
    this.add([...keys.values()].flatMap(({ secret }) => secret ?? []));
    this.add([...brought.keys()].filter((key) => keysBySha256.has(sha256Hex(key))));
  }

  note(key: string): void {
    if (MADE_KEY.test(key) || brought.has(key)) return;
    brought.set(key, true);
    this.add([key]);
  }

  /** `sent`: what `listOwnSecrets` finds. */
  forRequest(sent: readonly string[], login: readonly Field[] | null): Secrets {
    const held = sent.filter(this.#isKnown);
    if (login === null) return this.forSender(held);
    return this.forSender([...held, ...login.map(([, value]) => bareValue(value))]);
  }

  forSender(sent: readonly string[]): Secrets {
    return sent.length === 0 ? this : this.#ofSender(sent.join("\n"));
  }

  cleanQuery(query: string): string {
    const parts = query.slice(1).split("&");
    const kept = parts.filter((part) => !this.holds(part.replaceAll("+", " ")));
    if (kept.length === parts.length) return query;
    return kept.length === 0 ? "" : `?${kept.join("&")}`;
  }
}

const known = new WeakMap<Catalog, KnownSecrets>();

export function secretsOf(catalog: Catalog): KnownSecrets {
  return known.getOrInsertComputed(catalog, (each) => new KnownSecrets(each));
}
