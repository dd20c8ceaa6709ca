// The folder of a recording: `exchanges.jsonl`, and `bodies/`, where each piece of a body is a file with its hash as its
// name. Bodies are written before the line that names them, so a line that is there is complete after any kill. Several
// gateways may write into one recording, and somebody may remove it meanwhile.

import {
  type BigIntStats,
  closeSync,
  existsSync,
  fstatSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
} from "node:fs";
import { join } from "node:path";
import { RECORDING_NAME } from "../config/yaml/scalars.ts";
import { getErrorCode } from "../lib/errors.ts";
import { appendOwn, ForeignFile, isSame, openPlain, replaceFile } from "../lib/files/own-file.ts";
import { randomHex } from "../lib/secret.ts";
import { quoteWord } from "../lib/text/shell-word.ts";
import { readExchange, type RecordedExchange } from "./exchange.ts";
import { cutPieces } from "./pieces.ts";

const LINES = "exchanges.jsonl";
const BODIES = "bodies";
const OTHERS = 0o077;
const OTHERS_WRITE = 0o022;

/** The folder of all recordings of a ledger. */
export function nameRecordings(ledgerPath: string): string {
  return `${ledgerPath}.recordings`;
}

/** Stats a folder of this user. Null: there is none. Throws ForeignFile for a link, or a folder of somebody else. */
function requireFolder(path: string, forbidden: number): BigIntStats | null {
  const found = lstatSync(path, { bigint: true, throwIfNoEntry: false });
  if (found === undefined) return null;
  const own = process.geteuid?.();
  if (found.isSymbolicLink())
    throw new ForeignFile(`${path} is a link: remove it with rm ${quoteWord(path)}`);
  if (!found.isDirectory()) throw new ForeignFile(`${path} is not a folder: move it away`);
  if (own !== undefined && own !== 0 && found.uid !== BigInt(own))
    throw new ForeignFile(
      `${path} belongs to user ${found.uid}, not to you: a recording is used by its owner`,
    );
  if (process.platform !== "win32" && (Number(found.mode) & forbidden) !== 0)
    throw new ForeignFile(
      `${path} can be used by others: chmod ${forbidden === OTHERS ? "700" : "go-w"} ${quoteWord(path)}`,
    );
  return found;
}

function makeFolder(path: string): BigIntStats {
  try {
    mkdirSync(path, { mode: 0o700 });
  } catch (error) {
    if (getErrorCode(error) !== "EEXIST") throw error;
  }
  const made = requireFolder(path, OTHERS);
  if (made === null) throw new Error(`${path} was removed`);
  return made;
}

/** What is known of an exchange when it has ended. */
export interface FinishedExchange {
  readonly line: Omit<RecordedExchange, "request" | "response"> & {
    readonly request: Omit<RecordedExchange["request"], "body">;
    readonly response: Omit<RecordedExchange["response"], "body">;
  };
  readonly request: Uint8Array;
  readonly response: Uint8Array;
}

/** The recording has its largest size. */
export class RecordingFull extends Error {
  override readonly name = "RecordingFull";
}

/** After so much, the folder is measured again: another gateway may write into it. */
const MEASURE_BYTES = 16 * 1024 * 1024;

export class RecordingWriter {
  readonly #root: string;
  readonly #folder: string;
  readonly #mostBytes: number;
  #bytes = 0;
  #unmeasured = Number.POSITIVE_INFINITY;

  constructor(root: string, name: string, mostBytes: number) {
    if (!RECORDING_NAME.test(name))
      throw new RangeError("the name of a recording is letters, digits, - and _");
    this.#root = root;
    this.#folder = join(root, name);
    this.#mostBytes = mostBytes;
  }

  /** Throws RecordingFull, ForeignFile, or what the disk says. Then no line is written. */
  write(exchange: FinishedExchange): void {
    // If the recording is removed meanwhile, its bodies are gone, too: everything is written again.
    while (!this.#tryWrite(exchange)) continue;
  }

  #tryWrite({ line, request, response }: FinishedExchange): boolean {
    makeFolder(this.#root);
    const folder = makeFolder(this.#folder);
    if (this.#unmeasured > MEASURE_BYTES) {
      this.#bytes = measureFolder(this.#folder);
      this.#unmeasured = 0;
    }
    try {
      makeFolder(join(this.#folder, BODIES));
      const whole: RecordedExchange = {
        ...line,
        request: { ...line.request, body: this.#keepBody(request) },
        response: { ...line.response, body: this.#keepBody(response) },
      };
      // A line that was cut by a full disk or a kill ends here.
      const text = Buffer.from(`\n${JSON.stringify(whole)}\n`);
      this.#count(text.length);
      appendOwn(join(this.#folder, LINES), text);
    } catch (error) {
      if (!this.#isStill(folder)) return false;
      throw error;
    }
    return this.#isStill(folder);
  }

  #isStill(before: BigIntStats): boolean {
    const now = lstatSync(this.#folder, { bigint: true, throwIfNoEntry: false });
    const still = now !== undefined && isSame(before, now);
    if (!still) this.#unmeasured = Number.POSITIVE_INFINITY;
    return still;
  }

  #keepBody(bytes: Uint8Array): string[] {
    return cutPieces(bytes).map((piece) => {
      const hash = Bun.SHA256.hash(piece, "hex");
      const folder = join(this.#folder, BODIES, hash.slice(0, 2));
      const path = join(folder, hash);
      if (statSync(path, { throwIfNoEntry: false })?.size === piece.length) return hash;
      makeFolder(folder);
      this.#count(piece.length);
      // It gets its name when it is whole.
      replaceFile(path, piece, { mode: 0o600 });
      return hash;
    });
  }

  #count(bytes: number): void {
    if (this.#bytes + bytes > this.#mostBytes)
      throw new RecordingFull(`it would be larger than ${this.#mostBytes} bytes`);
    this.#bytes += bytes;
    this.#unmeasured += bytes;
  }
}

function measureFolder(folder: string): number {
  let bytes = 0;
  for (const entry of readdirSync(folder, { withFileTypes: true, recursive: true }))
    if (entry.isFile())
      bytes += statSync(join(entry.parentPath, entry.name), { throwIfNoEntry: false })?.size ?? 0;
  return bytes;
}

/** A recording that can be read. */
export interface Recording {
  readonly folder: string;
  readonly exchanges: readonly RecordedExchange[];
  /** Lines that are not an exchange. */
  readonly damaged: number;
  /** Throws if a piece is missing or was changed. */
  readonly readBody: (hashes: readonly string[]) => Buffer;
}

/** A text has no more. */
const MAX_LINES_BYTES = 2 ** 29;

/** Null: there is none. Throws ForeignFile if it is somebody else's: an agent does what a recording says. */
export function openRecording(folder: string): Recording | null {
  const path = join(folder, LINES);
  if (requireFolder(folder, OTHERS_WRITE) === null || !existsSync(path)) return null;
  const text = readOwned(path, MAX_LINES_BYTES).toString();
  const lines = text.split("\n").filter((line) => line !== "");
  const exchanges = lines.map(readExchange).filter((exchange) => exchange !== null);
  return {
    folder,
    exchanges: exchanges.toSorted((a, b) => Date.parse(a.time) - Date.parse(b.time)),
    damaged: lines.length - exchanges.length,
    readBody: (hashes) => readBody(folder, hashes),
  };
}

/** Larger ones are not recorded. A piece may be named again and again. */
const MAX_READ_BYTES = 2 ** 28;

function readBody(folder: string, hashes: readonly string[]): Buffer {
  let left = MAX_READ_BYTES;
  const pieces = hashes.map((hash) => {
    const piece = readPiece(folder, hash, left);
    left -= piece.length;
    return piece;
  });
  return Buffer.concat(pieces);
}

function readPiece(folder: string, hash: string, most: number): Buffer {
  const bytes = readOwned(join(folder, BODIES, hash.slice(0, 2), hash), most);
  if (Bun.SHA256.hash(bytes, "hex") === hash) return bytes;
  throw new Error(`the body ${hash} of the recording was changed`);
}

/** A plain file that is not a link. Only its owner can put it into the folder. */
function readOwned(path: string, most: number): Buffer {
  if (lstatSync(path).isSymbolicLink()) throw new ForeignFile(`${path} is a link`);
  const fd = openPlain(path);
  try {
    if (fstatSync(fd).size > most) throw new RangeError(`${path} has more than a recording may have`);
    return readFileSync(fd);
  } finally {
    closeSync(fd);
  }
}

export interface RecordingFacts {
  readonly name: string;
  readonly bytes: number;
  /** When something was written last, in milliseconds. */
  readonly usedAt: number;
}

/** The newest first. */
export function listRecordings(root: string): RecordingFacts[] {
  if (requireFolder(root, OTHERS_WRITE) === null) return [];
  return readdirSync(root)
    .filter((name) => RECORDING_NAME.test(name) && lstatSync(join(root, name)).isDirectory())
    .map((name) => {
      const folder = join(root, name);
      const file = statSync(join(folder, LINES), { throwIfNoEntry: false }) ?? statSync(folder);
      return { name, bytes: measureFolder(folder), usedAt: file.mtimeMs };
    })
    .toSorted((a, b) => b.usedAt - a.usedAt);
}

/** False: there is none. A gateway that writes into it begins anew: it finds the folder whole or not at all. */
export function removeRecording(root: string, name: string): boolean {
  const folder = join(root, name);
  if (requireFolder(root, OTHERS_WRITE) === null || requireFolder(folder, 0) === null) return false;
  const away = join(root, `.${name}.${randomHex(4)}.removed`);
  renameSync(folder, away);
  rmSync(away, { recursive: true, force: true });
  return true;
}

const REMOVED = /^\.[A-Za-z0-9_-]{1,64}\.[0-9a-f]{8}\.removed$/;

/** Removes what was not written to for `ageMs`, and what a kill left of a removal. Returns the names. */
export function removeOld(root: string, ageMs: number, now: number): string[] {
  if (requireFolder(root, OTHERS_WRITE) === null) return [];
  for (const name of readdirSync(root))
    if (REMOVED.test(name)) rmSync(join(root, name), { recursive: true, force: true });
  const old = listRecordings(root).filter(({ usedAt }) => now - usedAt > ageMs);
  return old.map(({ name }) => name).filter((name) => removeRecording(root, name));
}
