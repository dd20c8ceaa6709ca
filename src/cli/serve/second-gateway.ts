// What a second gateway on the same ledger reports: where the first one runs, and what to do.

import { z } from "zod";
import type { Catalog } from "../../config/catalog.ts";
import { getErrorCode } from "../../lib/errors.ts";
import { isGateway } from "../doctor/port.ts";
import { LockHeld } from "../../lib/files/file-lock.ts";
import { tryGateway } from "../access/control.ts";
import { fail } from "../terminal/terminal.ts";
import { formatBaseUrl } from "../tools/connection.ts";

const runningSchema = z.object({
  pid: z.number(),
  address: z.object({ host: z.string(), port: z.number() }),
});
const REPLY_MS = 2000;

/** Throws the error again, with more about the running gateway if it is one. */
export async function explainStartFailure(error: unknown, { ledger, listen }: Catalog): Promise<never> {
  const ledgerPath = ledger.path;
  const cause = error instanceof Error ? error.cause : undefined;
  if (getErrorCode(cause) === "EADDRINUSE" && (await isGateway(listen)))
    return fail(
      `A gateway with another config, or a demo, runs on ${formatBaseUrl(listen)} already. ` +
        "Use that one, stop it, or choose another port with --port or listen.port.",
    );
  if (!(cause instanceof LockHeld)) throw error;
  const { holder } = cause;
  const by = holder === null ? "another process" : `process ${holder.pid} since ${holder.since}`;
  const address = await findAddress(ledgerPath);
  const what = `The ledger ${ledgerPath} is being written by ${by}`;
  const stop = holder === null ? "stop it" : `stop it with \`kill ${holder.pid}\``;
  const another = "For a second gateway, set another `ledger.path` and port in its config.";
  return fail(
    address === null
      ? `${what}, which does not answer: ${stop}. ${another}`
      : `${what}: a gateway runs on ${address} already. Use that one, or ${stop}. ${another}`,
  );
}

async function findAddress(ledgerPath: string): Promise<string | null> {
  if (process.platform === "win32") return null;
  try {
    const reply = await tryGateway({ ledgerPath, timeoutMs: REPLY_MS }, "GET", "/state");
    const { data } = runningSchema.safeParse(reply);
    return data === undefined ? null : formatBaseUrl(data.address);
  } catch {
    return null;
  }
}
