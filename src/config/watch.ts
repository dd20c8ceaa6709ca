// Notices that the config file says something else than before, however it was
// changed: written in place, replaced by a rename, reached through another link.
// What is done with the new Catalog is for the caller.

import { type FSWatcher, statSync, watch } from "node:fs";
import { basename, dirname } from "node:path";
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

/** File events are prompt but not to be relied on: network file systems send none. */
const POLL_MS = 500;
/** A file counts as written when it reads the same twice, so long apart. */
const SETTLE_MS = 50;

/** `loaded`: what runs now. Keeps no process alive. Returns what ends the watch. */
export function watchConfig(loaded: Loaded, env: Environment, listener: ConfigListener): () => void {
  const { path } = loaded;
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
  const events = watchFolder(path, schedule);
  // It may have changed since it was loaded.
  schedule();
  return () => {
    clearInterval(poll);
    if (timer !== null) clearTimeout(timer);
    events?.close();
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

function tell(reading: Reading, path: string, env: Environment, listener: ConfigListener): void {
  try {
    if (reading.text === null) throw reading.error;
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

/** The folder, for a rename puts another file in the place of the watched one. The ledger often lies in it too: what is
 *  appended there must cost nothing here. */
function watchFolder(path: string, onEvent: () => void): FSWatcher | null {
  const name = basename(path);
  try {
    const watcher = watch(dirname(path), { persistent: false }, (_, changed) => {
      if (changed === null || changed === name) onEvent();
    });
    watcher.on("error", () => watcher.close());
    return watcher;
  } catch {
    return null;
  }
}
