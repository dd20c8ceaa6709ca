// What a second gateway on the same ledger or port reports: where the first one runs, and what to do.

import type { Catalog } from "../../config/catalog.ts";
import { getErrorCode } from "../../lib/errors.ts";
import { LockHeld } from "../../lib/files/file-lock.ts";
import { PLATFORM } from "../../lib/files/platform.ts";
import { findRunning, formatBaseUrl } from "../access/running.ts";
import { fail } from "../terminal/terminal.ts";

const REPLY_MS = 2000;

/** Throws the error again, with more about the running gateway if it is one. */
export async function explainStartFailure(error: unknown, { ledger, listen }: Catalog): Promise<never> {
  const cause = error instanceof Error ? error.cause : undefined;
  if (getErrorCode(cause) === "EADDRINUSE")
    return fail(
      `Another program uses ${formatBaseUrl(listen)}. It may be a gateway with another config, or a demo. ` +
        "Use that one, stop it, or choose another port with --port or listen.port.",
    );
  if (!(cause instanceof LockHeld)) throw error;
  const { holder } = cause;
  const by = holder === null ? "another process" : `process ${holder.pid} since ${holder.since}`;
  const stop = holder === null ? "stop it" : `stop it with \`${PLATFORM.end(holder.pid)}\``;
  const running = await findRunning(ledger.path, REPLY_MS);
  const state =
    running === null
      ? `, which does not answer: ${stop}`
      : `: a gateway runs on ${formatBaseUrl(running.address)} already. Use that one, or ${stop}`;
  return fail(
    `The ledger ${ledger.path} is being written by ${by}${state}. For a second gateway, set another \`ledger.path\` and port in its config.`,
  );
}
