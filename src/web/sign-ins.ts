// Who is signed in to the console's page. A code signs one browser in, once and within a minute. It then has a cookie
// and a token. Both are needed: every server on this machine gets the cookies of this host, whatever its port, but only
// pages of this very origin can read the token. Both end with this run of the gateway.

import { BoundedMap } from "../lib/memory/bounded-map.ts";
import { sha256Hex } from "../lib/secret.ts";

const CODE_MS = 60_000;
const MAX_CODES = 16;
const MAX_SIGN_INS = 32;
const SECRET_BYTES = 32;
/** A link should fit in a line of a terminal. */
const CODE_BYTES = 16;

export interface SignIn {
  readonly cookie: string;
  readonly token: string;
}

/** `used`: the code has been used before. The sign-in of that first use is ended. */
export type CodeFault = "unknown" | "expired" | "used";

interface Code {
  readonly until: number;
  /** The hash of the cookie for which it was exchanged. */
  cookie: string | null;
}

export interface SignIns {
  createCode(): string;
  signIn(code: string): SignIn | CodeFault;
  /** A browser may send several cookies, and foreign ones among them. */
  has(cookies: readonly string[], token: string | undefined): boolean;
  signOut(cookies: readonly string[]): void;
}

export function createSignIns(now: () => number): SignIns {
  /** By the hashes of codes and cookies: comparing a secret byte by byte would show how much of it is right. */
  const codes = new BoundedMap<string, Code>(MAX_CODES);
  const tokens = new BoundedMap<string, string>(MAX_SIGN_INS);
  return {
    createCode: () => {
      const code = newSecret(CODE_BYTES);
      codes.set(sha256Hex(code), { until: now() + CODE_MS, cookie: null });
      return code;
    },
    signIn: (text) => {
      const code = codes.get(sha256Hex(text));
      if (code === undefined) return "unknown";
      if (code.cookie !== null) {
        tokens.delete(code.cookie);
        return "used";
      }
      if (now() >= code.until) return "expired";
      const cookie = newSecret(SECRET_BYTES);
      const token = newSecret(SECRET_BYTES);
      code.cookie = sha256Hex(cookie);
      tokens.set(code.cookie, sha256Hex(token));
      return { cookie, token };
    },
    has: (cookies, token) =>
      token !== undefined && cookies.some((cookie) => tokens.get(sha256Hex(cookie)) === sha256Hex(token)),
    signOut: (cookies) => {
      for (const cookie of cookies) tokens.delete(sha256Hex(cookie));
    },
  };
}

function newSecret(bytes: number): string {
  return Buffer.from(crypto.getRandomValues(new Uint8Array(bytes))).toString("base64url");
}
