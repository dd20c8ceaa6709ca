// Checks a changed config without blocking the event loop. A long text is checked by a thread of its own. What it has
// accepted comes back as texts, and becomes a Catalog in parts, between which the event loop turns.

import { parseJson } from "../../lib/json/json.ts";
import { nextTurn } from "../../lib/time/next-turn.ts";
import {
  bindKeys,
  buildCatalog,
  type Catalog,
  type CatalogContext,
  indexKeys,
  type Key,
} from "../catalog.ts";
import { checkConfigText } from "../file/load.ts";
import { configSchema, keysSchema } from "../schema.ts";
import type { Environment } from "../yaml/expand.ts";
import { ConfigError } from "../yaml/problems.ts";
import { locateWorker } from "../../lib/files/platform.ts";

/** The check of a shorter text takes less than 10 ms. */
export const MAX_QUICK_LENGTH = 8 * 1024;

export interface CheckQuestion {
  readonly text: string;
  readonly file: string;
  readonly env: Environment;
}

export type CheckAnswer =
  | {
      readonly kind: "checked";
      /** JSON: the tree without the keys, and the keys in parts. */
      readonly rest: string;
      readonly keys: readonly string[];
      readonly around: Omit<CatalogContext, "env">;
      readonly warnings: readonly string[];
    }
  | { readonly kind: "refused"; readonly message: string };

export interface CheckedConfig {
  readonly catalog: Catalog;
  readonly warnings: readonly string[];
}

/** Rejects with a ConfigError, and with an AbortError when `signal` is aborted. */
export async function checkInBackground(
  question: CheckQuestion,
  signal: AbortSignal,
): Promise<CheckedConfig> {
  const answer = await askThread(question, signal);
  // Without a thread, a reload that blocks is better than none.
  if (answer === null) return checkConfigText(question.text, question.file, question.env);
  if (answer.kind === "refused") throw new ConfigError(answer.message);
  const catalog = buildCatalog(configSchema.parse(parseJson(answer.rest)), {
    ...answer.around,
    env: question.env,
  });
  await nextTurn();
  const keys: Key[] = [];
  for (const part of answer.keys) {
    keys.push(...bindKeys(keysSchema.parse(parseJson(part)), catalog.groups));
    await nextTurn();
  }
  const indexed = { ...catalog, ...indexKeys(keys) };
  await nextTurn();
  return { catalog: indexed, warnings: answer.warnings };
}

/** Null if the thread failed. */
function askThread(question: CheckQuestion, signal: AbortSignal): Promise<CheckAnswer | null> {
  const answer = Promise.withResolvers<CheckAnswer | null>();
  const worker = new Worker(locateWorker(import.meta.url, "config/reload"));
  // The gateway's process may end while it runs.
  worker.unref();
  const end = (): void => answer.reject(signal.reason);
  worker.addEventListener("message", ({ data }: MessageEvent<CheckAnswer>) => answer.resolve(data));
  worker.addEventListener("error", () => answer.resolve(null));
  signal.addEventListener("abort", end);
  worker.postMessage(question);
  return answer.promise.finally(() => {
    signal.removeEventListener("abort", end);
    worker.terminate();
  });
}
