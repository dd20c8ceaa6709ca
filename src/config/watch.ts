// Notices that the config file says something else than before, however it was
// changed: written in place, replaced by a rename, reached through another link.
// What is done with the new Catalog is for the caller.

import { statSync } from "node:fs";
import { sha256Hex } from "../lib/secret.ts";
import type { Environment } from "./expand.ts";
import { checkConfigText, type Loaded, readConfigText } from "./file.ts";
import { ConfigError } from "./problems.ts";

export interface ConfigListener {
  /** May throw, which makes it a problem. */
  onChange(loaded: Loaded): void;
  /** Once for each distinct bad content. What runs goes on as it is. */
  onProblem(error: ConfigError): void;
}

/** The file is looked at, not listened to. Events come only for a folder where files are replaced, and this one often
 *  holds the ledger too, whose every write would be told; network file systems send none. */
const POLL_MS = 250;
/** A file counts as written when it reads the same twice, so long apart. */
const SETTLE_MS = 50;

/** `loaded`: what runs now. Keeps no process alive. Returns what ends the watch. */
export function watchConfig(loaded: Loaded, env: Environment, listener: ConfigListener): () => void {
  const { path } = loaded;
  // It has been read, as secrets' tools like it; another look would wait for somebody to write.
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
      tell(reading, path, env, listener);
    } else {
      candidate = reading.sha256;
      schedule();
    }
  };
  const schedule = (): void => {
    if (timer === null) timer = setTimeout(look, SETTLE_MS).unref();
  };
  const poll = setInterval(() => {
    const now = stampOf(path);
    if (now === stamp) return;
    stamp = now;
    schedule();
  }, POLL_MS).unref();
  // It may have changed since it was loaded.
  schedule();
  return () => {
    clearInterval(poll);
    if (timer !== null) clearTimeout(timer);
  };
}

/** Of a line: files begin with what explains them. */
const SAYS_NOTHING = /^\s*(?:#|$)/;

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

function tell(reading: Reading, path: string, env: Environment, listener: ConfigListener): void {
  try {
    if (reading.text === null) throw reading.error;
    if (reading.text.split("\n").every((line) => SAYS_NOTHING.test(line)))
      throw new ConfigError(`${path} is empty: an editor may not have ended its work.`);
    listener.onChange({ ...checkConfigText(reading.text, path, env), path, sha256: reading.sha256 });
  } catch (error) {
    listener.onProblem(asConfigError(error));
  }
}

function asConfigError(error: unknown): ConfigError {
  if (error instanceof ConfigError) return error;
  return new ConfigError(error instanceof Error ? error.message : String(error));
}

function stampOf(path: string): string {
  const stats = statSync(path, { bigint: true, throwIfNoEntry: false });
  return stats === undefined
    ? "gone"
    : `${stats.dev}:${stats.ino}:${stats.size}:${stats.mtimeNs}:${stats.ctimeNs}`;
}
