// A recording is a folder with a file for each exchange: a line of JSON, then the answer's
// body. Pieces of request bodies are files named by their hashes. A file gets its name when
// complete. Several gateways may share a folder, and it may vanish meanwhile.

import { closeSync, existsSync, fstatSync, lstatSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { basename, join } from "node:path";
import { z } from "zod";
import { RECORDING_NAME } from "../config/yaml/scalars.ts";
import { codeOf } from "../lib/errors.ts";
import { ForeignFile, openPlain, replaceFile } from "../lib/files/own-file.ts";
import { makeFolder, OTHERS_WRITE, requireFolder } from "../lib/files/private-folder.ts";
import { parseJson } from "../lib/json/json.ts";
import { listElements } from "../lib/json/scanner.ts";
import { scanMembers } from "../lib/scan.ts";

/** Stops at the first wrong element: a million errors take a gigabyte. */
const listOf = <T>(element: z.ZodType<T>) =>
  z.custom<readonly T[]>((all) => Array.isArray(all) && all.every((each) => element.safeParse(each).success));
const count = z.int().nonnegative();
const amount = z.string().regex(/^\d+(\.\d+)?$/);
const fields = listOf(z.tuple([z.string(), z.string().regex(/^[^\r\n\0]*$/)]).readonly());
/** The hashes are file names: hence the strict form. */
const pieces = listOf(z.string().regex(/^[0-9a-f]{64}$/));

const exchangeSchema = z.lazy(() =>
  z.object({
    v: z.literal(2),
    id: z.string(),
    time: z.iso.datetime(),
    key: z.string(),
    transport: z.literal("websocket").optional(),
    request: z.object({ method: z.string(), target: z.string(), fields, pieces }),
    response: z.object({
      status: z.int().min(200).max(599),
      fields,
      /** Of each chunk or message: ms since the request, and bytes. */
      chunks: listOf(z.tuple([count, z.int().positive()]).readonly()),
      /** `reset`: the connection broke, and the answer is incomplete. `left`: the client left. */
      end: z.enum(["whole", "reset", "left"]),
    }),
    duration_ms: count,
    /** From the ledger; null: not billed. */
    line: z.looseObject({ charge_usd: amount.nullish() }).nullable(),
  }),
);

export type RecordedExchange = Readonly<z.infer<typeof exchangeSchema>>;

const TAIL = ".exchange";
const OLD_LINES = "exchanges.jsonl";

export function nameRecordings(ledgerPath: string): string {
  return `${ledgerPath}.recordings`;
}

export interface Bodies {
  readonly request: Uint8Array;
  readonly response: Uint8Array;
}

export class RecordingWriter {
  readonly #root: string;
  readonly #folder: string;
  /** The size of the folder's files; null: not measured yet. */
  #bytes: number | null = null;

  constructor(root: string, name: string) {
    if (!RECORDING_NAME.test(name))
      throw new RangeError("the name of a recording is letters, digits, - and _");
    this.#root = root;
    this.#folder = join(root, name);
  }

  /** Throws ForeignFile, the disk's errors, and RangeError above `maxBytes`. */
  write(exchange: RecordedExchange, bodies: Bodies, maxBytes: number): void {
    const request = cutPieces(bodies.request).map((bytes) => ({
      name: Bun.SHA256.hash(bytes, "hex"),
      bytes,
    }));
    const whole = {
      ...exchange,
      request: { ...exchange.request, pieces: request.map(({ name }) => name) },
    };
    const bytes = Buffer.concat([Buffer.from(`${JSON.stringify(whole)}\n`), bodies.response]);
    const files = [...request, { name: `${exchange.id}${TAIL}`, bytes }];
    try {
      this.#writeFiles(files, maxBytes);
    } catch (error) {
      // Somebody removed the folder: begin a new one.
      if (codeOf(error) !== "ENOENT") throw error;
      this.#writeFiles(files, maxBytes);
    }
  }

  #writeFiles(
    files: readonly { readonly name: string; readonly bytes: Uint8Array }[],
    maxBytes: number,
  ): void {
    makeFolder(this.#root);
    let stored = makeFolder(this.#folder) ? 0 : (this.#bytes ?? measureFolder(this.#folder));
    for (const { name, bytes } of files) {
      const path = join(this.#folder, name);
      if (lstatSync(path, { throwIfNoEntry: false })?.size === bytes.length) continue;
      stored += bytes.length;
      if (stored > maxBytes)
        throw new RangeError(`it would be larger than ${maxBytes} bytes (\`recordings.max_size\`)`);
      replaceFile(path, bytes, { mode: 0o600 });
      this.#bytes = stored;
    }
  }
}

/** Lists that an agent sends again with each request. */
const LISTS = ["messages", "input", "contents", "tools", "system"];
/** Smaller files would save nothing: each takes a block of the disk. */
const MIN_PIECE_BYTES = 2048;

/** Cuts after elements of lists:
 *  most pieces are then stored already, by earlier requests. */
function cutPieces(bytes: Uint8Array): Uint8Array[] {
  const scan = scanMembers(bytes, LISTS);
  const spans = LISTS.flatMap((name) => scan?.get(name) ?? []).toSorted((a, b) => a.start - b.start);
  const ends = spans.flatMap((span) => listElements(bytes, span).map(({ end }) => end));
  const cuts = [0];
  for (const end of ends) if (end - (cuts.at(-1) ?? 0) >= MIN_PIECE_BYTES) cuts.push(end);
  return cuts.map((start, index) => bytes.subarray(start, cuts[index + 1]));
}

function measureFolder(folder: string): number {
  return readdirSync(folder)
    .map((name) => lstatSync(join(folder, name), { throwIfNoEntry: false })?.size ?? 0)
    .reduce((sum, size) => sum + size, 0);
}

export type Recording = NonNullable<ReturnType<typeof openRecording>>;

/** Null: no such folder. Throws if it is another user's,
 *  because agents obey the answers in it. */
export function openRecording(folder: string) {
  if (!requireFolder(folder, OTHERS_WRITE)) return null;
  if (existsSync(join(folder, OLD_LINES)))
    throw new ForeignFile(`${folder} was recorded by version 0.2 and cannot be read: record it again`);
  const names = readdirSync(folder).filter((name) => name.endsWith(TAIL));
  const found = names.flatMap((name) => readExchange(join(folder, name))?.exchange ?? []);
  const readRequest = ({ request }: RecordedExchange): Buffer =>
    Buffer.concat(request.pieces.map((hash) => readPiece(folder, hash)));
  const readResponse = ({ id }: RecordedExchange): Buffer => {
    const read = readExchange(join(folder, `${id}${TAIL}`));
    if (read === null) throw new Error(`the exchange ${id} of the recording was changed`);
    return read.response;
  };
  return {
    folder,
    exchanges: found.toSorted((a, b) => Date.parse(a.time) - Date.parse(b.time)),
    damaged: names.length - found.length,
    readRequest,
    readResponse,
  };
}

const MAX_READ_BYTES = 2 ** 29;

/** Null: not an exchange, or incomplete. */
function readExchange(path: string) {
  const bytes = readOwned(path);
  const start = bytes.indexOf("\n") + 1;
  const exchange = exchangeSchema.safeParse(parseJson(bytes.toString("utf8", 0, start))).data;
  if (exchange === undefined || basename(path) !== `${exchange.id}${TAIL}`) return null;
  const end = exchange.response.chunks.reduce((sum, [, size]) => sum + size, start);
  return end === bytes.length ? { exchange, response: bytes.subarray(start) } : null;
}

function readPiece(folder: string, hash: string): Buffer {
  const bytes = readOwned(join(folder, hash));
  if (Bun.SHA256.hash(bytes, "hex") === hash) return bytes;
  throw new Error(`the piece ${hash} of the recording was changed`);
}

/** Refuses links. Only the folder's owner can put a plain file there. */
function readOwned(path: string): Buffer {
  if (lstatSync(path).isSymbolicLink()) throw new ForeignFile(`${path} is a link`);
  const fd = openPlain(path);
  try {
    if (fstatSync(fd).size > MAX_READ_BYTES)
      throw new RangeError(`${path} is larger than a file of a recording may be`);
    return readFileSync(fd);
  } finally {
    closeSync(fd);
  }
}

export function listRecordings(root: string) {
  if (!requireFolder(root, OTHERS_WRITE)) return [];
  return readdirSync(root)
    .filter((name) => RECORDING_NAME.test(name) && lstatSync(join(root, name)).isDirectory())
    .map((name) => {
      const folder = join(root, name);
      // Only a write counts as use.
      return { name, bytes: measureFolder(folder), usedAt: lstatSync(folder).mtimeMs };
    })
    .toSorted((a, b) => b.usedAt - a.usedAt);
}

/** A gateway that records into the folder starts a new one. */
export function removeRecording(root: string, name: string): boolean {
  const folder = join(root, name);
  if (!requireFolder(root, OTHERS_WRITE) || !requireFolder(folder, 0)) return false;
  rmSync(folder, { recursive: true, force: true });
  return true;
}

export function removeOld(root: string, ageMs: number, now: number): string[] {
  const old = listRecordings(root).filter(({ usedAt }) => now - usedAt > ageMs);
  return old.map(({ name }) => name).filter((name) => removeRecording(root, name));
}
