// What no field that leaves a request may hold, whichever field it is in: a key of this gateway, or a credential of one of
// its channels. Fields that go upstream, into a line, the log or the page pass through here.

import type { Catalog, Channel } from "../../config/catalog.ts";
import { sha256Hex } from "../../lib/secret.ts";

export type SecretHolder = Pick<Channel, "credential" | "headers">;

/** `Bearer x` of a header: the secret is x. */
const SCHEME = /^(?:basic|bearer|token)\s+/i;
/** Names of a channel's own headers (`headers` in the config) that may hold a secret. */
const SECRET_HEADER = /key|auth|cookie|credential|secret|token/i;
/** Shorter credentials are words such as "no". */
const MIN_LENGTH = 4;
/** Where no credential is needed, users write words such as "ollama" or "lm-studio", which responses contain. A value
 *  with a digit, or of this length, is not such a word. */
const MIN_LENGTH_WITH_DIGIT = 8;
const MIN_WORD_LENGTH = 12;

export function listSecrets({ credential, headers }: SecretHolder): string[] {
  const values = headers.filter(([name]) => SECRET_HEADER.test(name)).map(([, value]) => value);
  const texts = [credential, ...values].map((value) => value.replace(SCHEME, ""));
  return [...new Set(texts)].filter((text) => text.length >= MIN_LENGTH);
}

export function isUnmistakable(text: string): boolean {
  return text.length >= (/\d/.test(text) ? MIN_LENGTH_WITH_DIGIT : MIN_WORD_LENGTH);
}

const WORD = /[^\s,;:=&?/|"'`<>()[\]{}]{4,}/g;
const REMOVED = "[secret removed]";
/** The same names come again and again. */
const MAX_PLAIN = 1000;
const MAX_PLAIN_LENGTH = 256;

export class KnownSecrets {
  readonly #credentials: ReadonlySet<string>;
  readonly #keys: Catalog["keysBySha256"];
  /** Texts that hold none. */
  readonly #plain = new Set<string>();

  constructor({ channels, keysBySha256 }: Catalog) {
    this.#credentials = new Set([...channels.values()].flatMap(listSecrets).filter(isUnmistakable));
    this.#keys = keysBySha256;
  }

  /** The text without the words that are secrets. */
  mask(text: string): string {
    if (this.#plain.has(text)) return text;
    const masked = this.#isSecret(text)
      ? REMOVED
      : text.replace(WORD, (word) => (this.#isSecret(word) ? REMOVED : word));
    if (masked === text && text.length <= MAX_PLAIN_LENGTH) {
      if (this.#plain.size >= MAX_PLAIN) this.#plain.clear();
      this.#plain.add(text);
    }
    return masked;
  }

  holds(text: string): boolean {
    return this.mask(text) !== text;
  }

  /** The text, unless it holds a secret. */
  allow(text: string | undefined): string | undefined {
    return text === undefined || this.holds(text) ? undefined : text;
  }

  /** The query without the parameters that hold a secret. Every other byte stays. */
  cleanQuery(query: string): string {
    if (query === "" || this.#plain.has(query)) return query;
    const parts = query.slice(1).split("&");
    const kept = parts.filter((part) => !this.holds(decode(part)));
    if (kept.length > 0) return kept.length === parts.length ? query : `?${kept.join("&")}`;
    return "";
  }

  #isSecret(word: string): boolean {
    return word.length >= MIN_LENGTH && (this.#credentials.has(word) || this.#keys.has(sha256Hex(word)));
  }
}

function decode(part: string): string {
  const text = part.replaceAll("+", " ");
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

const known = new WeakMap<Catalog, KnownSecrets>();

export function secretsOf(catalog: Catalog): KnownSecrets {
  const found = known.get(catalog);
  if (found !== undefined) return found;
  const made = new KnownSecrets(catalog);
  known.set(catalog, made);
  return made;
}
