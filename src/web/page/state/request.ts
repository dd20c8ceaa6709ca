// Requests to the gateway, with the token.
// The browser adds the cookie.

import { escapeLines, escapeText } from "../../../lib/text/printable.ts";
import { TOKEN_HEADER } from "../../api.ts";

const TOKEN_NAME = "gateway-console";
const API = "/console/api/";

export class Refused extends Error {
  readonly status: number;
  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

/** Only pages of this origin can read the token.
 *  The cookie also reaches servers on other ports. */
export function readToken(): string | null {
  return localStorage.getItem(TOKEN_NAME);
}

export function followSignIns(see: () => void): () => void {
  const listen = ({ key, newValue }: StorageEvent): void => {
    if (key === TOKEN_NAME && newValue !== null) see();
  };
  addEventListener("storage", listen);
  return () => removeEventListener("storage", listen);
}

export function forgetToken(): void {
  localStorage.removeItem(TOKEN_NAME);
}

export async function signIn(code: string): Promise<void> {
  const { token } = await post<{ readonly token: string }>("sign-in", { code });
  localStorage.setItem(TOKEN_NAME, token);
}

export async function signOut(): Promise<void> {
  await post("sign-out", {}).finally(forgetToken);
}

export async function get<T>(name: string, signal?: AbortSignal): Promise<T> {
  return readJson<T>(await send(name, signal === undefined ? {} : { signal }), escapeTexts);
}

export async function post<T>(name: string, body: unknown): Promise<T> {
  const headers = { "content-type": "application/json" };
  return readJson<T>(
    await send(name, { method: "POST", headers, body: JSON.stringify(body) }),
    escapeMessages,
  );
}

export async function send(name: string, init: RequestInit): Promise<Response> {
  const headers = new Headers(init.headers);
  const token = readToken();
  if (token !== null) headers.set(TOKEN_HEADER, token);
  const response = await fetch(API + name, { ...init, headers, cache: "no-store" }).catch(
    (error: unknown) => {
      if (init.signal?.aborted === true) throw error;
      throw new Refused(
        0,
        "The gateway does not answer. It may have been stopped: `gateway serve` starts it.",
      );
    },
  );
  if (response.ok) return response;
  const { error } = await readJson<{ readonly error: string }>(response, escapeMessages);
  throw new Refused(response.status, error);
}

/** The document is not checked: page and gateway are of one build. */
async function readJson<T>(response: Response, escape: typeof escapeTexts): Promise<T> {
  return JSON.parse(await response.text(), escape);
}

/** For `JSON.parse`: bidirectional control characters would reorder names on the page. */
function escapeTexts(_: string, value: unknown): unknown {
  return typeof value === "string" ? escapeText(value) : value;
}

export function escapeMessages(_: string, value: unknown): unknown {
  return typeof value === "string" ? escapeLines(value) : value;
}

export function describeError(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
