// Calls the running gateway, through a socket of this user.

import { existsSync } from "node:fs";
import { z } from "zod";
import { fetchFrom, isPrivate, locateControl, VERSION_FIELD } from "../../gateway/api/socket.ts";
import { codeOf } from "../../lib/errors.ts";
import { getField, getText, parseJson } from "../../lib/json/json.ts";
import { VERSION } from "../../lib/version.ts";
import { fail } from "../terminal/terminal.ts";

export type ControlCall = ({ readonly ledgerPath: string } | { readonly socket: string }) & {
  readonly body?: unknown;
  readonly timeoutMs?: number;
};

type Method = "GET" | "POST";

export async function tryGateway(call: ControlCall, method: Method, path: string): Promise<unknown> {
  const response = await sendToGateway(call, method, path);
  return response === null ? null : readAnswer(response, path);
}

/** Returns null if no gateway runs. Throws if it has another minor version. */
export async function readDocument<T>(call: ControlCall, method: Method, path: string): Promise<T | null> {
  const response = await sendToGateway(call, method, path);
  if (response === null) return null;
  const version = response.headers.get(VERSION_FIELD);
  const document = await readAnswer(response, path);
  return nameMinor(version) === nameMinor(VERSION) ? z.custom<T>().parse(document) : refuseVersion(version);
}

export const NOT_RUNNING = "No gateway is running for this config. Start it with `gateway serve`.";

export async function askGateway<T>(
  call: ControlCall,
  method: Method,
  path: string,
  absent = NOT_RUNNING,
): Promise<T> {
  return (await readDocument<T>(call, method, path)) ?? fail(absent);
}

async function readAnswer(response: Response, path: string): Promise<unknown> {
  const body = parseJson(await response.text());
  if (response.ok) return body;
  if (response.status === 404) return refuseVersion(response.headers.get(VERSION_FIELD));
  return fail(getText(getField(body, "error")) || `The gateway answered ${response.status} to ${path}.`);
}

function nameMinor(version: string | null): string | undefined {
  return version?.split(".", 2).join(".");
}

function refuseVersion(version: string | null): never {
  const named = version === null ? "another version" : `version ${version}`;
  return fail(`The running gateway has ${named}, this command ${VERSION}. Stop it and start it again.`);
}

async function sendToGateway(call: ControlCall, method: Method, path: string): Promise<Response | null> {
  const places = "socket" in call ? [] : locateControl(call.ledgerPath);
  const found = places.filter((place) => isPrivate(place.folder) && existsSync(place.path));
  for (const socket of "socket" in call ? [call.socket] : found.map((place) => place.path)) {
    const reply = await fetchReply(socket, method, path, call);
    if (reply !== null) return reply;
  }
  return null;
}

/** A busy gateway may take seconds, and a POST may probe an upstream. */
const TIMEOUT_MS = { GET: 20_000, POST: 60_000 } as const;
const GONE_CODES = new Set([
  "ENOENT",
  "ECONNREFUSED",
  "ECONNRESET",
  "ConnectionRefused",
  "FailedToOpenSocket",
]);

async function fetchReply(
  socket: string,
  method: Method,
  path: string,
  { body, timeoutMs = TIMEOUT_MS[method] }: ControlCall,
): Promise<Response | null> {
  const signal = AbortSignal.timeout(timeoutMs);
  try {
    const content = body === undefined ? {} : { body: JSON.stringify(body) };
    return await fetchFrom(socket, `/${path}`, {
      method,
      signal,
      ...content,
    });
  } catch (error) {
    if (GONE_CODES.has(codeOf(error))) return null;
    if (!signal.aborted) throw error;
    const span = `${timeoutMs / 1000} s`;
    return fail(`The running gateway does not answer (in ${span}). If it is suspended, \`fg\` resumes it.`);
  }
}
