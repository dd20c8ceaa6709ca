// Writes a browser's requests to the console, field by field, for tests that forge them.

import type { InsideGateway } from "../harness/gateway.ts";
import { rawRequest } from "../harness/raw.ts";
import { TOKEN_HEADER } from "../../src/web/api.ts";

export interface Visitor {
  readonly cookie: string;
  readonly token: string;
}

interface Listening {
  readonly port: number;
}

export interface Visit {
  readonly method?: string;
  readonly body?: unknown;
  readonly fields?: Readonly<Record<string, string>>;
}

function readCode(link: string): string {
  return link.slice(link.indexOf("#code=") + "#code=".length);
}

/** Returns the headers with which a page of this origin sends a request. */
export function ownFields({ port }: Listening): Record<string, string> {
  const host = `127.0.0.1:${port}`;
  return { host, origin: `http://${host}`, "sec-fetch-site": "same-origin" };
}

export function visit(gateway: Listening, target: string, { method, body, fields = {} }: Visit = {}) {
  const type = body === undefined ? {} : { "content-type": "application/json" };
  return rawRequest(gateway.port, {
    method: method ?? (body === undefined ? "GET" : "POST"),
    target,
    fields: { host: `127.0.0.1:${gateway.port}`, ...type, ...fields },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
}

export async function trySignIn(gateway: Listening, link: string) {
  const body = { code: readCode(link) };
  return visit(gateway, "/console/api/sign-in", { body, fields: ownFields(gateway) });
}

export function signIn(gateway: InsideGateway): Promise<Visitor> {
  return signInBy(gateway, gateway.running.console?.createLink() ?? "");
}

export async function signInBy(gateway: Listening, link: string): Promise<Visitor> {
  const answer = await trySignIn(gateway, link);
  const [cookie = ""] = (answer.field("set-cookie") ?? "").split(";");
  return { cookie, token: JSON.parse(answer.text).token };
}

export function knownFields(gateway: Listening, { cookie, token }: Visitor): Record<string, string> {
  return { ...ownFields(gateway), cookie, [TOKEN_HEADER]: token };
}
