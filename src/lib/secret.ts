// Secrets: made here, hashed here, and kept out of what people read. Where a
// secret is stored, and who may use it, is for others to know.

import { randomBytes } from "node:crypto";

const ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
/** 62^43 > 2^256: as many digits as 256 bits need. */
const DIGITS = 43;
const BASE = BigInt(ALPHABET.length);

/** `sk-` and 256 random bits, in letters and digits alone so that a double click takes all of it. */
export function newSecret(): string {
  let rest = BigInt(`0x${randomBytes(32).toString("hex")}`);
  let digits = "";
  for (let place = 0; place < DIGITS; place += 1) {
    digits = ALPHABET.charAt(Number(rest % BASE)) + digits;
    rest /= BASE;
  }
  return `sk-${digits}`;
}

/** Lower-case hex. Looking a key up by this instead of by its secret leaks nothing by the time it takes. */
export function sha256Hex(text: string): string {
  return Bun.CryptoHasher.hash("sha256", text, "hex");
}

/** Whether a word that is about to be shown to somebody may be a secret in the wrong place. */
export function looksSecret(word: string): boolean {
  return /^(sk|AIza|eyJ|xai|gsk|ghp)[-_A-Za-z0-9]{6}/.test(word);
}
