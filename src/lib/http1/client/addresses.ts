// The addresses of a host. One lookup serves all connections that are dialled within half a minute.

import { lookup } from "node:dns/promises";
import { isIP } from "node:net";

/** The system does not say how long an answer is valid. */
const VALID_MS = 30_000;

export class Addresses {
  readonly #host: string;
  #found: Promise<readonly string[]> | null = null;
  #validUntil = 0;

  constructor(host: string) {
    this.#host = host;
  }

  /** In the order in which they should be tried. Rejects if the name has none. */
  find(): Promise<readonly string[]> {
    if (this.#found !== null && performance.now() < this.#validUntil) return this.#found;
    const found = isIP(this.#host) === 0 ? lookUp(this.#host) : Promise.resolve([this.#host]);
    this.#found = found;
    this.#validUntil = performance.now() + VALID_MS;
    found.catch(() => this.forget());
    return found;
  }

  /** The next `find` looks them up again. */
  forget(): void {
    this.#found = null;
  }
}

/** IPv6 and IPv4 alternate, so that a network on which one of them does not work costs one delay (RFC 8305, section 4). */
async function lookUp(host: string): Promise<string[]> {
  const found = await lookup(host, { all: true });
  const first = found.filter(({ family }) => family === found[0]?.family);
  const second = found.filter(({ family }) => family !== found[0]?.family);
  const longest = first.length > second.length ? first : second;
  return longest.flatMap((_, index) =>
    [first[index], second[index]].flatMap((each) => (each === undefined ? [] : [each.address])),
  );
}
