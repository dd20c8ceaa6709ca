// Who is signed in to the console. A code signs in one browser, once, within a minute.
// The browser then needs a cookie and a token: every server on this machine gets this
// host's cookies, but only pages of this origin can read the token. A file next to the
// ledger keeps their hashes: a restart signs nobody out.

import { z } from "zod";
import { readOwn, replaceFile } from "../lib/files/own-file.ts";
import { parseJson } from "../lib/json/json.ts";
import { BoundedMap } from "../lib/memory/bounded-map.ts";
import { sha256Hex } from "../lib/secret.ts";

const CODE_MS = 60_000;
const MAX_CODES = 16;
const MAX_SIGN_INS = 32;
export const SIGN_IN_SECONDS = 30 * 86_400;
const SECRET_BYTES = 32;
/** A link should fit in a terminal's line. */
const CODE_BYTES = 16;

/** `used`: the code was used before.
 *  The browser that used it first is now signed out, too. */
export type CodeFault = "unknown" | "expired" | "used";

interface Code {
  readonly until: number;
  cookie: string | null;
}

interface Kept {
  readonly token: string;
  readonly until: number;
}

/** `path`: the file of sign-ins. Without a file (null), they end with this run. */
export function createSignIns(now: () => number, path: string | null) {
  /** Keyed by hashes: comparing secrets byte by byte would show how much is right. */
  const codes = new BoundedMap<string, Code>(MAX_CODES);
  const known = new BoundedMap<string, Kept>(MAX_SIGN_INS);
  let isRead = path === null;
  const read = (): BoundedMap<string, Kept> => {
    if (!isRead && path !== null) for (const [cookie, kept] of readFile(path)) known.set(cookie, kept);
    isRead = true;
    return known;
  };
  const end = (cookies: readonly string[]): void => {
    const ended = cookies.filter((cookie) => read().delete(cookie));
    if (ended.length > 0) save(path, known);
  };
  return {
    createCode: (): string => {
      const code = newSecret(CODE_BYTES);
      codes.set(sha256Hex(code), { until: now() + CODE_MS, cookie: null });
      return code;
    },
    signIn: (text: string) => {
      const code = codes.get(sha256Hex(text));
      if (code === undefined) return "unknown";
      if (code.cookie !== null) {
        end([code.cookie]);
        return "used";
      }
      if (now() >= code.until) return "expired";
      const cookie = newSecret(SECRET_BYTES);
      const token = newSecret(SECRET_BYTES);
      code.cookie = sha256Hex(cookie);
      const until = now() + SIGN_IN_SECONDS * 1000;
      read().set(code.cookie, { token: sha256Hex(token), until });
      save(path, known);
      return { cookie, token };
    },
    /** A browser may send several cookies, some of them foreign. */
    has: (cookies: readonly string[], token: string | undefined): boolean => {
      if (token === undefined) return false;
      const hash = sha256Hex(token);
      return cookies.some((cookie) => {
        const kept = read().get(sha256Hex(cookie));
        return kept?.token === hash && now() < kept.until;
      });
    },
    signOut: (cookies: readonly string[]): void => end(cookies.map(sha256Hex)),
  };
}

/** Without a readable file, everybody signs in again. */
function readFile(path: string): (readonly [cookie: string, kept: Kept])[] {
  // Made only here, because schemas slow the start.
  // Versions before 0.3 noted the browser, too.
  const signIn = z.tuple([z.string(), z.string(), z.number()]).rest(z.string());
  const fileSchema = z.object({ v: z.literal(1), sign_ins: z.array(signIn) });
  try {
    const { data } = fileSchema.safeParse(parseJson(readOwn(path) ?? ""));
    return (data?.sign_ins ?? []).map(([cookie, token, until]) => [cookie, { token, until }]);
  } catch {
    return [];
  }
}

function save(path: string | null, known: Iterable<readonly [cookie: string, kept: Kept]>): void {
  if (path === null) return;
  const signIns = Array.from(known, ([cookie, kept]) => [cookie, kept.token, kept.until]);
  try {
    replaceFile(path, `${JSON.stringify({ v: 1, sign_ins: signIns })}\n`);
  } catch {
    // The sign-in then ends with this run.
    // The ledger reports a full disk.
  }
}

function newSecret(bytes: number): string {
  return Buffer.from(crypto.getRandomValues(new Uint8Array(bytes))).toString("base64url");
}
