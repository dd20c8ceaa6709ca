// A gateway's private socket, named after the ledger's path: a ledger has one gateway.
// On Windows it is a port. A private file has the port's number and two tokens.

import {
  chmodSync,
  closeSync,
  constants,
  existsSync,
  fchmodSync,
  fstatSync,
  lstatSync,
  mkdirSync,
  openSync,
  readFileSync,
  type Stats,
} from "node:fs";
import { homedir, tmpdir, userInfo } from "node:os";
import { join } from "node:path";
import { z } from "zod";
import { resolveFolder } from "../../lib/files/links.ts";
import { replaceFile } from "../../lib/files/own-file.ts";
import { PLATFORM } from "../../lib/files/platform.ts";
import { fetchAnswer } from "../../lib/http/fetch.ts";
import { parseJson } from "../../lib/json/json.ts";
import { randomHex, sha256Hex } from "../../lib/secret.ts";

type Environment = Readonly<Record<string, string | undefined>>;

/** All possible places, the best one first: a service's environment may differ from a command's. */
export function locateControl(ledgerPath: string, env: Environment = process.env) {
  const name = `${sha256Hex(identifyLedger(ledgerPath)).slice(0, 16)}.sock`;
  return listFolders(env).map((folder) => ({ folder, path: join(folder, name) }));
}

function listFolders(env: Environment): string[] {
  if (!PLATFORM.hasModes)
    return [join(env["LOCALAPPDATA"] ?? join(homedir(), "AppData", "Local"), "gateway")];
  const { uid } = userInfo();
  const runtime = [env["XDG_RUNTIME_DIR"] ?? "", `/run/user/${uid}`].filter(
    (base) => base !== "" && existsSync(base),
  );
  const folders = [
    ...runtime.map((base) => join(base, "gateway")),
    join(tmpdir(), `gateway-${uid}`),
    `/tmp/gateway-${uid}`,
  ];
  return [...new Set(folders)];
}

function identifyLedger(path: string): string {
  try {
    return resolveFolder(path);
  } catch {
    return path;
  }
}

export function makeControlFolder(folder: string): void {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  if (PLATFORM.hasModes && isOwn(lstatSync(folder))) closeToOthers(folder);
  if (!isPrivate(folder)) throw new Error(`${folder} is not a folder that only this user can use`);
}

/** Uses a descriptor: the name may lead to another folder by now. */
function closeToOthers(folder: string): void {
  const fd = openSync(folder, constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW);
  try {
    if (isOwn(fstatSync(fd))) fchmodSync(fd, 0o700);
  } finally {
    closeSync(fd);
  }
}

export function isPrivate(folder: string): boolean {
  const found = lstatSync(folder, { throwIfNoEntry: false });
  if (!PLATFORM.hasModes) return found?.isDirectory() === true;
  return found !== undefined && isOwn(found) && (found.mode & 0o077) === 0;
}

function isOwn(found: Stats): boolean {
  return found.isDirectory() && found.uid === userInfo().uid;
}

const MAX_BODY_BYTES = 64 << 20;

type Answer = (request: Request) => Promise<Response>;

export const VERSION_FIELD = "x-gateway-version";
const TOKEN = "x-gateway-control";
const place = z.lazy(() =>
  z.object({
    port: z.number(),
    ask: z.string(),
    reply: z.string(),
  }),
);

export function serveOn(path: string, answer: Answer, isSocket = PLATFORM.hasSockets): Bun.Server<undefined> {
  const [ask, reply] = [randomHex(32), randomHex(32)];
  const where = isSocket ? { unix: path } : { hostname: "127.0.0.1", port: 0 };
  const server = Bun.serve({
    ...where,
    maxRequestBodySize: MAX_BODY_BYTES,
    fetch: async (request, self) => {
      // A probe takes as long as its upstream.
      self.timeout(request, 0);
      if (isSocket) return answer(request);
      // The time to compare hashes reveals nothing.
      if (sha256Hex(request.headers.get(TOKEN) ?? "") !== sha256Hex(ask))
        return new Response("", { status: 403 });
      const answered = await answer(request);
      // This token shows that no other program has taken the gateway's port.
      answered.headers.set(TOKEN, reply);
      return answered;
    },
  });
  if (isSocket) chmodSync(path, 0o600);
  else replaceFile(path, JSON.stringify({ port: server.port, ask, reply }));
  return server;
}

export interface Asked {
  readonly method: "GET" | "POST";
  readonly body?: string;
  readonly signal: AbortSignal;
}

export async function fetchFrom(
  path: string,
  address: string,
  asked: Asked,
  isSocket = PLATFORM.hasSockets,
): Promise<Response> {
  if (isSocket)
    return fetchAnswer(new URL(address, "http://gateway"), {
      proxy: null,
      unix: path,
      ...asked,
    });
  const { data } = place.safeParse(parseJson(readFileSync(path, "utf8")));
  if (data !== undefined) {
    const url = new URL(address, `http://127.0.0.1:${data.port}`);
    const answered = await fetchAnswer(url, {
      proxy: null,
      headers: { [TOKEN]: data.ask },
      ...asked,
    });
    if (answered.headers.get(TOKEN) === data.reply) return answered;
  }
  throw Object.assign(new Error("no gateway of this version listens there"), { code: "ECONNREFUSED" });
}
