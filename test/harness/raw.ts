// A client on a bare socket: it sends exact bytes, reads exact bytes, and sees how the
// connection ended. HTTP clients do not show cuts, resets and pauses.

import type { Socket } from "bun";

type Ending = "fin" | "reset";

export interface RawConnection {
  send(bytes: string | Uint8Array): void;
  /** All bytes so far, and the pieces in which they came (`atMs`: the milliseconds since the connection was opened). */
  bytes(): Buffer;
  readonly pieces: readonly { readonly bytes: Buffer; readonly atMs: number }[];
  /** Resolves as soon as the bytes so far satisfy the condition, or contain the string. Rejects if the connection ends before. */
  until(condition: string | ((bytes: Buffer) => boolean)): Promise<Buffer>;
  readonly ended: Promise<Ending>;
  /** `pause` stops reading, and `resume` goes on. */
  pause(): void;
  resume(): void;
  /** `close` ends the connection as usual, and `reset` with a reset. */
  close(): void;
  reset(): void;
}

export async function openRaw(port: number, hostname = "127.0.0.1"): Promise<RawConnection> {
  const pieces: { bytes: Buffer; atMs: number }[] = [];
  const opened = performance.now();
  const ended = Promise.withResolvers<Ending>();
  let waiting: (() => void)[] = [];
  let over = false;
  let joined = Buffer.alloc(64 * 1024);
  let size = 0;
  const append = (more: Uint8Array): void => {
    if (size + more.length > joined.length) {
      const larger = Buffer.alloc(2 * (size + more.length));
      larger.set(joined.subarray(0, size));
      joined = larger;
    }
    joined.set(more, size);
    size += more.length;
  };
  const wake = (): void => {
    const woken = waiting;
    waiting = [];
    for (const each of woken) each();
  };
  const finish = (how: Ending): void => {
    over = true;
    ended.resolve(how);
    wake();
  };
  let pending: Uint8Array[] = [];
  const flush = (to: Socket): void => {
    while (pending.length > 0) {
      const [first = new Uint8Array()] = pending;
      const taken = to.write(first);
      if (taken < first.length) {
        pending[0] = first.subarray(Math.max(0, taken));
        return;
      }
      pending = pending.slice(1);
    }
  };
  const socket = await Bun.connect({
    hostname,
    port,
    socket: {
      data(_, bytes) {
        pieces.push({ bytes: Buffer.from(bytes), atMs: performance.now() - opened });
        append(bytes);
        wake();
      },
      drain: flush,
      end: () => finish("fin"),
      close: (_, error) => finish(error === undefined || error === null ? "fin" : "reset"),
      error: () => finish("reset"),
    },
  });
  const bytes = (): Buffer => joined.subarray(0, size);
  return {
    pieces,
    bytes,
    ended: ended.promise,
    send(chunk) {
      pending.push(typeof chunk === "string" ? Buffer.from(chunk) : chunk);
      flush(socket);
    },
    async until(condition) {
      const holds = typeof condition === "string" ? seek(condition) : condition;
      for (let all = bytes(); ; all = bytes()) {
        if (holds(all)) return all;
        if (over)
          throw new Error(
            `the connection ended before the condition held, after: ${all.toString().slice(-500)}`,
          );
        await new Promise<void>((resolve) => waiting.push(resolve));
      }
    },
    pause: () => socket.pause(),
    resume: () => socket.resume(),
    close: () => void socket.end(),
    reset: () => socket.terminate(),
  };
}

/** Returns a function that says whether the bytes so far have the text. It looks only at the new bytes. */
function seek(text: string): (bytes: Buffer) => boolean {
  let seen = 0;
  return (bytes) => {
    const found = bytes.includes(text, Math.max(0, seen - text.length));
    seen = bytes.length;
    return found;
  };
}

export interface RequestLines {
  readonly method?: string;
  readonly target: string;
  readonly fields?: Readonly<Record<string, string>>;
  readonly body?: string | Uint8Array | object;
}

/** Writes the bytes of a request; `host`, `content-type` and `content-length` are added where they are missing. */
export function writeRequest({ method, target, fields = {}, body }: RequestLines): Buffer {
  const isBytes = body instanceof Uint8Array;
  const text = typeof body === "object" && !isBytes ? JSON.stringify(body) : (body ?? "");
  const bytes = Buffer.from(isBytes ? body : text);
  const all: Record<string, string> = {
    host: "127.0.0.1",
    ...(body === undefined
      ? {}
      : { "content-type": "application/json", "content-length": String(bytes.length) }),
    ...fields,
  };
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`);
  const verb = method ?? (body === undefined ? "GET" : "POST");
  return Buffer.concat([Buffer.from(`${verb} ${target} HTTP/1.1\r\n${lines.join("")}\r\n`), bytes]);
}

export interface RawAnswer {
  readonly status: number;
  readonly fields: readonly (readonly [name: string, value: string])[];
  field(name: string): string | undefined;
  /** The body, joined from its chunks if it has any. */
  readonly body: Buffer;
  readonly text: string;
  /** The body has all that its length or its chunks announce. A body with neither of them is never complete. */
  readonly complete: boolean;
}

/** Returns a function that says whether an answer is complete. It reads each byte once, because an answer may have 30 MB. */
function seekEnd(): (bytes: Buffer) => boolean {
  let head: { readonly start: number; readonly chunked: boolean; readonly length: number } | null = null;
  let chunk = 0;
  return (bytes) => {
    head ??= readFraming(bytes);
    if (head === null) return false;
    if (!head.chunked) return bytes.length - head.start >= head.length;
    chunk = Math.max(chunk, head.start);
    for (;;) {
      const line = bytes.indexOf("\r\n", chunk);
      if (line < 0) return false;
      const size = Number.parseInt(bytes.toString("latin1", chunk, line), 16);
      if (size === 0) return bytes.includes("\r\n\r\n", line);
      if (Number.isNaN(size) || bytes.length < line + size + 4) return false;
      chunk = line + size + 4;
    }
  };
}

/** Null: the head is not complete. A body without chunks and without a `content-length` has the length Infinity. */
function readFraming(bytes: Buffer): { start: number; chunked: boolean; length: number } | null {
  const end = bytes.indexOf("\r\n\r\n");
  if (end < 0) return null;
  const status = Number(bytes.toString("latin1", 9, 12));
  if (status >= 100 && status < 200 && status !== 101) {
    const next = readFraming(bytes.subarray(end + 4));
    return next === null ? null : { ...next, start: next.start + end + 4 };
  }
  const answer = parseAnswer(bytes.subarray(0, end + 4));
  const chunked = answer?.field("transfer-encoding")?.includes("chunked") === true;
  const length = status === 204 || status === 304 ? 0 : Number(answer?.field("content-length") ?? Infinity);
  return { start: end + 4, chunked, length };
}

/** Reads an answer, whole or cut, and skips interim (1xx) heads. Null: not even a head. */
export function parseAnswer(bytes: Buffer): RawAnswer | null {
  const end = bytes.indexOf("\r\n\r\n");
  if (end < 0) return null;
  const [first = "", ...lines] = bytes.toString("latin1", 0, end).split("\r\n");
  const status = Number(first.split(" ")[1]);
  const rest = bytes.subarray(end + 4);
  if (status >= 100 && status < 200 && status !== 101) return parseAnswer(rest);
  const fields = lines.map((line) => {
    const colon = line.indexOf(":");
    return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()] as const;
  });
  const field = (name: string): string | undefined => fields.find(([other]) => other === name)?.[1];
  const chunked = field("transfer-encoding")?.includes("chunked") === true;
  const length = status === 204 || status === 304 ? "0" : field("content-length");
  const { body, complete } = chunked ? joinChunks(rest) : takeLength(rest, length);
  return { status, fields, field, body, text: body.toString(), complete };
}

function takeLength(rest: Buffer, length: string | undefined): { body: Buffer; complete: boolean } {
  if (length === undefined) return { body: rest, complete: false };
  return { body: rest.subarray(0, Number(length)), complete: rest.length >= Number(length) };
}

function joinChunks(rest: Buffer): { body: Buffer; complete: boolean } {
  const parts: Buffer[] = [];
  for (let at = 0; ;) {
    const line = rest.indexOf("\r\n", at);
    if (line < 0) return { body: Buffer.concat(parts), complete: false };
    const size = Number.parseInt(rest.toString("latin1", at, line), 16);
    if (Number.isNaN(size)) throw new Error(`not a chunk size: ${rest.toString("latin1", at, line)}`);
    if (size === 0) return { body: Buffer.concat(parts), complete: rest.includes("\r\n\r\n", line) };
    parts.push(rest.subarray(line + 2, line + 2 + size));
    at = line + 2 + size + 2;
  }
}

export interface Exchanged extends RawAnswer {
  /** `open`: the answer was complete and the connection stayed open. */
  readonly ending: Ending | "open";
  readonly bytes: Buffer;
  readonly pieces: RawConnection["pieces"];
}

/** Sends a request on a connection of its own. Resolves when the answer is complete or the connection has ended. */
export async function rawRequest(
  port: number,
  request: RequestLines | string | Uint8Array,
): Promise<Exchanged> {
  const connection = await openRaw(port);
  const lines =
    typeof request === "string" || request instanceof Uint8Array ? request : writeRequest(request);
  connection.send(lines);
  const whole = connection.until(seekEnd()).then(() => "open" as const);
  const ending = await Promise.race([whole.catch(() => connection.ended), connection.ended]);
  const bytes = connection.bytes();
  connection.close();
  const empty = {
    status: 0,
    fields: [],
    field: () => undefined,
    body: Buffer.alloc(0),
    text: "",
    complete: false,
  };
  return { ...(parseAnswer(bytes) ?? empty), ending, bytes, pieces: connection.pieces };
}

/** Reads the payloads of the `data:` lines of an SSE text. */
export function readEvents(text: string): string[] {
  return text
    .split(/\r?\n/)
    .flatMap((line) => (line.startsWith("data: ") ? [line.slice("data: ".length)] : []));
}

/** Opens a client that counts bytes and does not keep them, for answers larger than a test's memory. */
export async function openCounter(port: number): Promise<{
  send(bytes: Uint8Array): void;
  pause(): void;
  resume(): void;
  came(): number;
  until(bytes: number): Promise<void>;
  close(): void;
}> {
  let came = 0;
  let wanted = Number.POSITIVE_INFINITY;
  let wake = (): void => {};
  const socket = await Bun.connect({
    hostname: "127.0.0.1",
    port,
    socket: {
      data(_, bytes) {
        came += bytes.length;
        if (came >= wanted) wake();
      },
      close: () => wake(),
    },
  });
  return {
    send: (bytes) => void socket.write(bytes),
    pause: () => socket.pause(),
    resume: () => socket.resume(),
    came: () => came,
    until: (bytes) =>
      new Promise((resolve) => {
        wanted = bytes;
        wake = resolve;
        if (came >= bytes) resolve();
      }),
    close: () => void socket.end(),
  };
}
