// The thread that writes recordings. It removes secrets, cuts bodies into pieces and hashes them, next to the requests.

import { getErrorMessage } from "../../../lib/errors.ts";
import { yieldToOthers } from "../../../lib/files/platform.ts";
import { decodeBody } from "../../../lib/codings.ts";
import { asBuffer } from "../../../lib/memory/bytes.ts";
import { BoundedMap } from "../../../lib/memory/bounded-map.ts";
import { type FinishedExchange, RecordingFull, RecordingWriter } from "../../../recording/store.ts";
import { NO_SECRETS, Secrets } from "../../intake/secrets.ts";

/** What the gateway knows now. It comes before the first exchange, and after each change of the config. */
export interface Settings {
  readonly root: string;
  readonly maxBytes: number;
  readonly credentials: readonly string[];
  /** The hashes of all keys: nothing else of them is known. */
  readonly keys: ReadonlySet<string>;
}

export interface Job extends FinishedExchange {
  readonly request: Uint8Array<ArrayBuffer>;
  readonly response: Uint8Array<ArrayBuffer>;
  readonly name: string;
  readonly own: readonly string[];
  /** The content-encoding of the request's body. */
  readonly coding: string | undefined;
}

/** An exchange is done: written, or not. */
export interface Done {
  readonly bytes: number;
  readonly name: string;
  /** Why the recording has to stop. */
  readonly problem: string | null;
}

/** A decoded body is not longer than the gateway accepts. */
const MAX_DECODED_BYTES = 256 * 1024 * 1024;

/** Keys and logins of the last requests: each is removed from all of them. */
const MAX_SENT = 32;
const PLAIN_WORDS = 2 ** 16;
const [MIN_WORD, MAX_WORD] = [8, 256];
const [SPACE, BACKSLASH] = [0x20, 0x5c];
const BETWEEN_WORDS = tabulate(/[\s,;:=&?/|"'`<>()[\]{}\\]/);
/** After an escape of JSON, however often it is escaped itself, a word begins. */
const ESCAPED = tabulate(/[nrtbf"/]/);

function tabulate(characters: RegExp): Uint8Array {
  return Uint8Array.from({ length: 256 }, (_, code) => Number(characters.test(String.fromCharCode(code))));
}

/** Removes keys, credentials and logins by the code that redacts answers. The length of a text stays. */
class Cleaner {
  readonly #known: Secrets;
  readonly #keys: ReadonlySet<string>;
  readonly #sent = new BoundedMap<string, true>(MAX_SENT);
  #senders: Secrets = NO_SECRETS;
  /** 52 bits of words that are not keys. Who does not know a key cannot find a word with the same ones. */
  readonly #plain = new Float64Array(PLAIN_WORDS).fill(-1);

  constructor({ credentials, keys }: Settings) {
    this.#known = new Secrets(credentials);
    this.#keys = keys;
  }

  /** `own`: the key and the login of the request. */
  cleanBytes(bytes: Uint8Array, own: readonly string[]): Uint8Array {
    return this.#maskKeys(this.#addSent(own).maskPieces(this.#known.mask(bytes)));
  }

  cleanJson<T>(value: T, own: readonly string[]): T {
    return JSON.parse(asBuffer(this.cleanBytes(Buffer.from(JSON.stringify(value)), own)).toString());
  }

  #addSent(own: readonly string[]): Secrets {
    const isNew = own.some((secret) => !this.#sent.has(secret));
    for (const secret of own) this.#sent.set(secret, true);
    if (isNew) this.#senders = new Secrets(this.#sent.keys());
    return this.#senders;
  }

  /** Of other keys only the hashes are known, so each word is compared. */
  #maskKeys(bytes: Uint8Array): Uint8Array {
    let clean: Buffer | null = null;
    walkWords(bytes, (from, to) => {
      if (this.#isKey(bytes, from, to)) (clean ??= Buffer.from(bytes)).fill("*", from, to);
    });
    return clean ?? bytes;
  }

  #isKey(bytes: Uint8Array, from: number, to: number): boolean {
    const mark = markWord(bytes, from, to);
    const place = mark % PLAIN_WORDS;
    // Prompts repeat their words.
    if (this.#plain[place] === mark) return false;
    if (this.#keys.has(Bun.SHA256.hash(bytes.subarray(from, to), "hex"))) return true;
    this.#plain[place] = mark;
    return false;
  }
}

/** A loop takes a fifth of the time of an expression. */
function walkWords(bytes: Uint8Array, take: (from: number, to: number) => void): void {
  let from = 0;
  for (let at = 0; at <= bytes.length; at += 1) {
    const byte = bytes[at] ?? SPACE;
    const isBetween = BETWEEN_WORDS[byte] === 1;
    if (!isBetween && at - from < MAX_WORD) continue;
    if (at - from >= MIN_WORD) take(from, at);
    if (byte === BACKSLASH) at += ESCAPED[bytes[at + 1] ?? SPACE] ?? 0;
    from = isBetween ? at + 1 : at;
  }
}

function markWord(bytes: Uint8Array, from: number, to: number): number {
  let low = 0;
  let high = 0;
  for (let at = from; at < to; at += 1) {
    low = Math.imul(low ^ (bytes[at] ?? 0), 0x01000193);
    high = (Math.imul(high, 31) + (bytes[at] ?? 0)) | 0;
  }
  return (low >>> 0) * 2 ** 20 + (high & 0xf_ffff);
}

let settings: Settings | null = null;
let cleaner: Cleaner | null = null;
const writers = new Map<string, RecordingWriter>();

function follow(next: Settings): void {
  settings = next;
  cleaner = new Cleaner(next);
  writers.clear();
}

async function record({ name, own, coding, line, request, response }: Job): Promise<void> {
  if (settings === null || cleaner === null) throw new Error("nothing says where recordings are");
  const { root, maxBytes } = settings;
  const writer = writers.getOrInsertComputed(name, () => new RecordingWriter(root, name, maxBytes));
  // What cannot be read may hold a secret.
  const plain =
    coding === undefined ? request : await decodeBody(request, coding, MAX_DECODED_BYTES).catch(() => null);
  if (plain === null) return;
  writer.write({
    line: cleaner.cleanJson(line, own),
    request: cleaner.cleanBytes(plain, own),
    response: cleaner.cleanBytes(response, own),
  });
}

async function run(job: Job): Promise<void> {
  const done = { name: job.name, bytes: job.request.length + job.response.length };
  try {
    await record(job);
    post({ ...done, problem: null });
  } catch (error) {
    const more = error instanceof RecordingFull ? " (`recordings.max_size`)" : "";
    post({ ...done, problem: `${getErrorMessage(error)}${more}` });
  }
}

function post(message: Done): void {
  globalThis.postMessage(message);
}

yieldToOthers();
let last = Promise.resolve();

globalThis.addEventListener("message", ({ data }: MessageEvent<Settings | Job>) => {
  last = last.then(() => ("root" in data ? follow(data) : run(data)));
});
