// Notices when the content of the config file changes, however it was changed:
// written in place, replaced by a rename, or a link that now leads elsewhere. The
// caller decides what to do with the new Catalog.

import { getErrorMessage } from "../../lib/errors.ts";
import { statSync } from "node:fs";
import { everySecond } from "../../lib/time/heartbeat.ts";
import { sha256Hex } from "../../lib/secret.ts";
import type { Environment } from "../yaml/expand.ts";
import { checkConfigText, type Loaded, readConfigText } from "./load.ts";
import { ConfigError } from "../yaml/problems.ts";

export interface ConfigListener {
  /** If it throws, the error is passed to `onProblem`. */
  onChange(loaded: Loaded): void;
  /** Called once for each different bad content. The running configuration stays. */
  onProblem(error: ConfigError): void;
}

/** The file is polled (docs/decisions/0010-config-is-polled.md). To notice a replaced file, events must be watched on its
 *  folder, which often holds the ledger too, so that every line would cause one. Network file systems send none. */
/** A change counts when nothing was written for this long, or when two reads this far apart give the same content: then no
 *  editor is still writing. */
const SETTLE_MS = 50;

/** `loaded`: the running configuration. Returns a function that ends the watch. The watch does not keep the process alive. */
export function watchConfig(loaded: Loaded, env: Environment, listener: ConfigListener): () => void {
  const { path } = loaded;
  // Tools for secrets pass the config through a pipe, which was read already. Reading again would wait for a writer.
  if (statSync(path, { throwIfNoEntry: false })?.isFIFO() === true) return () => {};
  let seen = loaded.sha256;
  let candidate: string | null = null;
  let stamp = stampOf(path);
  let timer: ReturnType<typeof setTimeout> | null = null;

  const look = (): void => {
    timer = null;
    const reading = readConfig(path);
    if (reading.sha256 === seen) {
      candidate = null;
    } else if (reading.sha256 === candidate) {
      seen = reading.sha256;
      candidate = null;
      report(reading, path, env, listener);
    } else {
      candidate = reading.sha256;
      schedule();
    }
  };
  const schedule = (): void => {
    if (timer === null) timer = setTimeout(look, SETTLE_MS).unref();
  };
  const endPolls = everySecond(() => {
    const now = stampOf(path);
    if (now === stamp) return;
    stamp = now;
    look();
    if (candidate !== null && isSettled(path)) look();
  });
  // It may have changed since it was loaded.
  schedule();
  return () => {
    endPolls();
    if (timer !== null) clearTimeout(timer);
  };
}

interface Reading {
  readonly sha256: string;
  readonly text: string | null;
  readonly error: ConfigError | null;
}

function readConfig(path: string): Reading {
  try {
    const text = readConfigText(path);
    return { sha256: sha256Hex(text), text, error: null };
  } catch (error) {
    const refusal = asConfigError(error);
    return { sha256: refusal.message, text: null, error: refusal };
  }
}

function report(reading: Reading, path: string, env: Environment, listener: ConfigListener): void {
  try {
    if (reading.text === null) throw reading.error;
    listener.onChange({ ...checkConfigText(reading.text, path, env), path, sha256: reading.sha256 });
  } catch (error) {
    listener.onProblem(asConfigError(error));
  }
}

function asConfigError(error: unknown): ConfigError {
  if (error instanceof ConfigError) return error;
  return new ConfigError(getErrorMessage(error));
}

/** The system sets the time of the last change, so copying a file with its times cannot fake it. */
function isSettled(path: string): boolean {
  const stats = statSync(path, { throwIfNoEntry: false });
  return stats !== undefined && Date.now() - stats.ctimeMs > SETTLE_MS;
}

function stampOf(path: string): string {
  const stats = statSync(path, { bigint: true, throwIfNoEntry: false });
  return stats === undefined
    ? "gone"
    : `${stats.dev}:${stats.ino}:${stats.size}:${stats.mtimeNs}:${stats.ctimeNs}`;
}
