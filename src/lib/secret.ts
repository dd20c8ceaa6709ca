// Creates, hashes and recognises secrets.

const ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
/** 62^43 > 2^256, so 43 digits hold 256 bits. */
const DIGITS = 43;
const BASE = BigInt(ALPHABET.length);

/** A new key. A double click selects all of it. */
export function newSecret(): string {
  let remainder = BigInt(`0x${randomHex(32)}`);
  let digits = "";
  for (let place = 0; place < DIGITS; place += 1) {
    digits = ALPHABET.charAt(Number(remainder % BASE)) + digits;
    remainder /= BASE;
  }
  return `sk-${digits}`;
}

/** `node:crypto` takes longer to load. */
export function randomHex(bytes: number): string {
  return crypto.getRandomValues(new Uint8Array(bytes)).toHex();
}

/** Looking up a hash does not leak the secret through timing. */
export function sha256Hex(text: string): string {
  return Bun.CryptoHasher.hash("sha256", text, "hex");
}

/** Whether a displayed word may contain a misplaced secret. */
export function looksSecret(word: string): boolean {
  // After a letter or a digit, such a prefix counts only if a digit follows:
  // "task-runner" is a name.
  return /(?<![A-Za-z0-9])(sk|AIza|eyJ|xai|gsk|ghp)[-_A-Za-z0-9]{6}|(sk-|AIza|eyJ|xai-|gsk_|ghp_)(?=[-_A-Za-z]{0,64}\d)[-_A-Za-z0-9]{10}/.test(
    word,
  );
}

/** Whether a name may hold a secret.
 *  Without a space, YAML reads `secret:…` as one name. */
export function looksJoined(name: string): boolean {
  return /[\s:="'`,{}]/.test(name) || looksSecret(name);
}
