// The end of the chain of hashes, as far as it has been followed: what the next line has to bear.

import { GENESIS } from "./ledger-line.ts";

const DIGITS = Buffer.from("0123456789abcdef");
/** From where a line bears its hash, to its newline. */
const LENGTH = `${GENESIS}"}`.length;

export class ChainEnd {
  readonly #hash = Buffer.from(GENESIS, "hex");

  /** The line that ends at `to` follows, if it is one. */
  isBorneBy(bytes: Uint8Array, to: number): boolean {
    let at = to - LENGTH;
    for (let index = 0; index < this.#hash.length; index += 1) {
      const byte = this.#hash[index] ?? 0;
      if (bytes[at] !== DIGITS[byte >> 4] || bytes[at + 1] !== DIGITS[byte & 15]) return false;
      at += 2;
    }
    return true;
  }

  equals(hash: Buffer): boolean {
    return this.#hash[0] === hash[0] && this.#hash.equals(hash);
  }

  follow(line: Uint8Array): void {
    Bun.SHA256.hash(line, this.#hash);
  }

  toString(): string {
    return this.#hash.toString("hex");
  }
}
