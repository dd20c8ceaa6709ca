// The thread that writes recordings. It removes secrets, cuts bodies into pieces and hashes them, next to the requests.

import { getErrorMessage } from "../../../lib/errors.ts";
import { yieldToOthers } from "../../../lib/files/platform.ts";
import { decodeBody } from "../../../lib/http/encoding.ts";
import { type FinishedExchange, RecordingFull, RecordingWriter } from "../../../recording/store.ts";
import { Cleaner, type KnownToGateway } from "./clean.ts";

/** What the gateway knows now. It comes before the first exchange, and after each change of the config. */
export interface Settings extends KnownToGateway {
  readonly root: string;
  readonly maxBytes: number;
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
    post({ ...done, problem: explain(error) });
  }
}

function explain(error: unknown): string {
  return error instanceof RecordingFull
    ? `${error.message} (\`recordings.max_size\`)`
    : getErrorMessage(error);
}

function post(message: Done): void {
  globalThis.postMessage(message);
}

yieldToOthers();
let last = Promise.resolve();

globalThis.addEventListener("message", ({ data }: MessageEvent<Settings | Job>) => {
  last = last.then(() => ("root" in data ? follow(data) : run(data)));
});
