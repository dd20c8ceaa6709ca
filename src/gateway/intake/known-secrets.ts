// What no field that leaves a request may hold, whichever field it is in: a key of this gateway, or a credential of one of
// its channels. Fields that go upstream, into a line, the log or the page pass through here. And what a request that is
// refused may not repeat in its error or the log: the credentials that came with it.

import type { Catalog, Channel } from "../../config/catalog.ts";
import { queryOf, readKeyParameter } from "../../dialects/path.ts";
import { GatewayError } from "../../lib/errors.ts";
import { type Field, Fields } from "../../lib/http/fields.ts";
import type { Exchange } from "../../lib/http/exchange.ts";
import { sha256Hex } from "../../lib/secret.ts";
import { decodePercents } from "../../lib/text/escapes.ts";
import { REMOVED } from "../../lib/text/printable.ts";

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
/** A secret may hold what stands between words. */
const LONG_WORD = /\S{4,}/g;
/** What looks like a client's key, of any gateway or provider. */
const KEY_LIKE = /(?:^|[\s"'=:,;-])sk-[\w-]{8}/;
const LINE_END = "\r\n";
/** No text starts with it. */
const NO_LINE = LINE_END;
/** The same names come again and again. */
const MAX_PLAIN = 1000;
const MAX_PLAIN_LENGTH = 256;

export class KnownSecrets {
  readonly #credentials: ReadonlySet<string>;
  readonly #keys: Catalog["keysBySha256"];
  /** Texts that hold none in any spelling, and nothing that looks like one. */
  readonly #plain = new Set<string>();
  /** The lines of the last request's fields. They hold none. */
  readonly #lastLines: string[] = [];

  constructor({ channels, keysBySha256 }: Pick<Catalog, "channels" | "keysBySha256">) {
    const credentials = [...channels.values()].flatMap(listSecrets).filter(isUnmistakable);
    // Names of fields and of tools are in lower case.
    this.#credentials = new Set([...credentials, ...credentials.map((text) => text.toLowerCase())]);
    this.#keys = keysBySha256;
  }

  /** The text without the words that are secrets. */
  mask(text: string): string {
    if (this.#plain.has(text)) return text;
    let masked = text;
    for (const credential of this.#credentials) masked = masked.replaceAll(credential, REMOVED);
    return masked.replace(LONG_WORD, (long) => {
      if (this.#isKey(long)) return REMOVED;
      return long.replace(WORD, (word) => (word !== long && this.#isKey(word) ? REMOVED : word));
    });
  }

  holds(text: string): boolean {
    return !this.#isPlain(text) && listSpellings(text).some((each) => this.mask(each) !== each);
  }

  /** The text, unless it holds a secret. */
  allow(text: string | undefined): string | undefined {
    return text === undefined || this.holds(text) ? undefined : text;
  }

  /** The query without the parameters that hold a secret, or what looks like a key. Every other byte stays. */
  cleanQuery(query: string): string {
    if (query === "" || this.#plain.has(query)) return query;
    const parts = query.slice(1).split("&");
    const kept = parts.filter((part) => this.#isPlain(part.replaceAll("+", " ")));
    if (kept.length > 0) return kept.length === parts.length ? query : `?${kept.join("&")}`;
    return "";
  }

  /** The fields without those that hold a secret, or what looks like a key. Nearly all requests have none of these, and
   *  most of the lines of the request before. */
  cleanFields(fields: Fields): Fields {
    const { text } = fields;
    let index = 0;
    for (let start = 0; start < text.length; index += 1) {
      let line = this.#lastLines[index] ?? NO_LINE;
      if (!text.startsWith(line, start)) {
        line = text.slice(start, text.indexOf(LINE_END, start) + LINE_END.length);
        const colon = line.indexOf(": ");
        if (!this.#maySend([line.slice(0, colon), line.slice(colon + 2, -LINE_END.length)]))
          return Fields.of([...fields].filter((field) => this.#maySend(field)));
        this.#lastLines[index] = line;
      }
      start += line.length;
    }
    return fields;
  }

  /** Names come again, and their values may not. */
  #maySend([name, value]: Field): boolean {
    return this.#isPlain(name) && this.#isPlain(value);
  }

  #isPlain(text: string): boolean {
    if (this.#plain.has(text)) return true;
    const isPlain = listSpellings(text).every((each) => !KEY_LIKE.test(each) && this.mask(each) === each);
    if (isPlain && text.length <= MAX_PLAIN_LENGTH) {
      if (this.#plain.size >= MAX_PLAIN) this.#plain.clear();
      this.#plain.add(text);
    }
    return isPlain;
  }

  #isKey(word: string): boolean {
    return this.#keys.has(sha256Hex(word));
  }
}

/** As it is, and without percent escapes. */
function listSpellings(text: string): readonly string[] {
  if (!text.includes("%")) return [text];
  try {
    return [text, decodeURIComponent(text)];
  } catch {
    return [text];
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

/** Where a request may have its key, or a login and what belongs to it. */
const SECRET_FIELD = /authorization|api-?key$|^x-gateway-key$|cookie|account-id$/;
/** A shorter piece does not give a secret away. */
const PIECE_LENGTH = 12;
const LONGER_WORD = /\S{12,}/g;

/** The key and the login that came with the request, whichever it was let in with. */
export function listOwnSecrets({ fields, target }: Pick<Exchange, "fields" | "target">): string[] {
  const values = [...fields]
    .filter(([name]) => SECRET_FIELD.test(name))
    .map(([, value]) => value.replace(SCHEME, ""));
  const parameter = readKeyParameter(queryOf(target));
  return parameter === null ? values : [...values, parameter];
}

/**
 * Finds words that have a piece of such a credential, in whichever case: as they are, without percent escapes, or in base64. Anybody can be
 * refused, without a key, so nothing here takes the time that tables of all escapes would take.
 */
export function findRepeats(exchange: Pick<Exchange, "fields" | "target">): {
  readonly holds: (text: string | undefined) => boolean;
  readonly mask: (text: string) => string;
} {
  let secrets: readonly string[] | null = null;
  const holds = (text = ""): boolean => {
    if (text.length < PIECE_LENGTH) return false;
    const own = (secrets ??= listOwnSecrets(exchange).map((secret) => secret.toLowerCase()));
    if (own.length === 0) return false;
    return read(text).some((each) => own.some((secret) => sharesPiece(each.toLowerCase(), secret)));
  };
  return { holds, mask: (text) => text.replaceAll(LONGER_WORD, (word) => (holds(word) ? REMOVED : word)) };
}

function read(text: string): string[] {
  const shifts = [0, 1, 2, 3].map((shift) => Buffer.from(text.slice(shift), "base64").toString("latin1"));
  return [text, decodePercents(text), ...shifts];
}

function sharesPiece(text: string, secret: string): boolean {
  for (let at = 0; at + PIECE_LENGTH <= text.length; at += 1)
    if (secret.includes(text.slice(at, at + PIECE_LENGTH))) return true;
  return false;
}

/** The error without what it repeats of them. */
export function cleanError(error: GatewayError, exchange: Pick<Exchange, "fields" | "target">): GatewayError {
  const message = findRepeats(exchange).mask(error.message);
  return message === error.message ? error : new GatewayError(error.code, message, error);
}
