// Notices new content of the config or gateway.env, also if a link to it changes.

import { messageOf } from "../../lib/errors.ts";
import { statSync } from "node:fs";
import { sha256Hex } from "../../lib/secret.ts";
import { type Environment, KEYCHAIN } from "../yaml/expand.ts";
import { placeEnvFile } from "./env-file.ts";
import { addKeychain, checkConfigText, hashVariables, type LoadedConfig, readConfigText } from "./load.ts";
import { ConfigError } from "../yaml/problems.ts";

export interface ConfigListener {
  /** An error thrown here goes to `onProblem`. */
  onChange(loaded: Pick<LoadedConfig, "catalog" | "warnings">): void;
  /** Called once for each bad content. */
  onProblem(error: ConfigError): void;
}

export type ConfigOutcome =
  | { readonly kind: "applied" }
  | { readonly kind: "refused"; readonly message: string };

/** A poll, the pause and the check together take less than the promised second. */
const POLL_MS = 500;
/** After this pause, no editor is still writing. */
const SETTLE_MS = 50;

/** Polls for changes. Events would come for the whole folder, which often holds
 * the ledger, and network file systems send no events. */
export function watchConfig(loaded: LoadedConfig, env: Environment, listener: ConfigListener) {
  const { path } = loaded;
  // A pipe is not watched: a second read of it would wait for a writer.
  if (statSync(path, { throwIfNoEntry: false })?.isFIFO() === true)
    return { follow: async () => null, end: () => {} };
  let seen = nameContent(loaded);
  let outcome: Promise<ConfigOutcome | null> = Promise.resolve({ kind: "applied" });
  let stamp = stampOf(path);
  let timer: ReturnType<typeof setTimeout> | null = null;
  const ended = new AbortController();
  /** Stops asking the keychain when the file changes again. */
  let check = new AbortController();

  const apply = (reading: Reading): void => {
    if (nameContent(reading) === seen) return;
    seen = nameContent(reading);
    check.abort();
    check = new AbortController();
    outcome = report(reading, { path, env, signal: check.signal }, listener);
  };
  const hasNewStamp = (): boolean => {
    const before = stamp;
    stamp = stampOf(path);
    return stamp !== before;
  };
  const settle = (): void => {
    timer ??= setTimeout(() => {
      timer = null;
      if (hasNewStamp()) settle();
      else apply(readConfig(path));
    }, SETTLE_MS).unref();
  };
  const polls = setInterval(() => {
    if (timer === null && hasNewStamp()) settle();
  }, POLL_MS).unref();
  // The file may have changed after it was loaded.
  if (nameContent(readConfig(path)) !== seen) settle();
  return {
    /** Resolves when `written` or newer content is in force or refused.
     *  Null: the file is not watched. */
    follow: async (written: string): Promise<ConfigOutcome | null> => {
      for (; !ended.signal.aborted; await Bun.sleep(SETTLE_MS)) {
        const reading = readConfig(path);
        if (reading.sha256 === written) apply(reading);
        const isSettled = nameContent(reading) === seen;
        const result = isSettled ? await outcome : null;
        if (result !== null) return result;
        if (!isSettled) settle();
      }
      return null;
    },
    end: () => {
      ended.abort();
      clearInterval(polls);
      check.abort();
      if (timer !== null) clearTimeout(timer);
    },
  };
}

interface Reading extends Pick<LoadedConfig, "sha256" | "variables"> {
  readonly text: string | null;
  readonly error: unknown;
}

function readConfig(path: string): Reading {
  const variables = hashVariables(path);
  try {
    const text = readConfigText(path);
    return { sha256: sha256Hex(text), variables, text, error: null };
  } catch (error) {
    return { sha256: messageOf(error), variables, text: null, error };
  }
}

function nameContent({ sha256, variables }: Pick<LoadedConfig, "sha256" | "variables">): string {
  return `${variables} ${sha256}`;
}

interface Place {
  readonly path: string;
  readonly env: Environment;
  readonly signal: AbortSignal;
}

/** Null: the text changed during the check. */
async function report(
  { text, error }: Reading,
  { path, env, signal }: Place,
  listener: ConfigListener,
): Promise<ConfigOutcome | null> {
  try {
    if (text === null) throw error;
    // Without a keychain there is no `await`: the text takes effect at once.
    const variables = text.includes(KEYCHAIN) ? await addKeychain(text, env) : env;
    if (signal.aborted) return null;
    listener.onChange(checkConfigText(text, path, variables));
    return { kind: "applied" };
  } catch (failure) {
    if (signal.aborted) return null;
    const problem = failure instanceof ConfigError ? failure : new ConfigError(messageOf(failure));
    listener.onProblem(problem);
    return { kind: "refused", message: problem.message };
  }
}

/** No change stays hidden: a program can set mtime back, but not ctime. */
function stampOf(path: string): string {
  const stamps = [path, placeEnvFile(path)].map((file) => {
    const stats = statSync(file, { bigint: true, throwIfNoEntry: false });
    return stats && `${stats.dev}:${stats.ino}:${stats.size}:${stats.mtimeNs}:${stats.ctimeNs}`;
  });
  return stamps.join(" ");
}
