// Asks the running gateway, over the control path that only this user can use.

import { existsSync } from "node:fs";
import { z } from "zod";
import { isPrivate, locateControl } from "../gateway/control/socket.ts";
import { codeOf } from "../lib/errors.ts";
import { parseJson } from "../lib/json/json.ts";
import { VERSION } from "../lib/version.ts";
import { fail } from "./terminal.ts";

const Refusal = z.object({ error: z.string() });

export interface Asked {
  readonly ledgerPath: string;
  readonly signal?: AbortSignal;
  /** How long a response may take. The default is long enough for a very busy machine. */
  readonly patienceMs?: number;
}

/** The JSON document that it answers with; null when no gateway runs on this ledger. */
export async function tryGateway(asked: Asked, method: Method, path: string): Promise<unknown> {
  const response = await reach(asked, method, path);
  if (response === null) return null;
  const body = parseJson(await response.text());
  if (response.ok) return body;
  const refusal = Refusal.safeParse(body);
  return fail(refusal.success ? refusal.data.error : `The gateway answered ${response.status} to ${path}.`);
}

const NONE_RUNS = "No gateway is running for this config: `gateway serve` starts one.";

export async function askGateway(
  ledgerPath: string,
  method: Method,
  path: string,
  absent = NONE_RUNS,
): Promise<unknown> {
  return (await tryGateway({ ledgerPath }, method, path)) ?? fail(absent);
}

const Versioned = z.object({ version: z.string() });

/** What it told, which another version tells otherwise. */
export function readTold<T>(schema: z.ZodType<T>, told: unknown): T {
  const read = schema.safeParse(told);
  if (read.success) return read.data;
  const { data } = Versioned.safeParse(told);
  const named = data === undefined ? "" : ` (version ${data.version})`;
  return fail(
    `The running gateway${named} is not of this command's version (${VERSION}), and is not understood: ` +
      "stop it, and start it again with this one.",
  );
}

type Method = "GET" | "POST";

async function reach(asked: Asked, method: Method, path: string): Promise<Response | null> {
  if (process.platform === "win32") return fail("A running gateway cannot be asked on Windows.");
  for (const { folder, path: unix } of locateControl(asked.ledgerPath)) {
    if (!isPrivate(folder) || !existsSync(unix)) continue;
    try {
      return await ask(unix, method, path, asked);
    } catch (error) {
      if (!isGone(error)) throw error;
    }
  }
  return null;
}

/** The gateway answers a GET at once, but a busy machine may take seconds to run it. A POST may probe an upstream first. */
const PATIENCE_MS = { GET: 15_000, POST: 60_000 } as const;

/** Its head is waited for with patience; the rest comes with it. */
async function ask(unix: string, method: Method, path: string, asked: Asked): Promise<Response> {
  const { signal, patienceMs = PATIENCE_MS[method] } = asked;
  const late = new AbortController();
  const timer = setTimeout(() => late.abort(), patienceMs);
  try {
    const either = AbortSignal.any(signal === undefined ? [late.signal] : [late.signal, signal]);
    return await fetch(`http://gateway${path}`, { unix, method, signal: either });
  } catch (error) {
    if (!late.signal.aborted) throw error;
    return fail(
      "The running gateway does not answer: it may be suspended (`fg` in its shell, or kill -CONT, lets it go on), or stuck.",
    );
  } finally {
    clearTimeout(timer);
  }
}

const GONE = new Set(["ENOENT", "ECONNREFUSED", "ECONNRESET", "ConnectionRefused", "FailedToOpenSocket"]);

function isGone(error: unknown): boolean {
  return GONE.has(codeOf(error));
}
