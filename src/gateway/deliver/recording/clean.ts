// Removes keys, credentials and logins from what is recorded, by the code that redacts answers. The length of a text stays.

import { asBuffer } from "../../../lib/memory/bytes.ts";
import { BoundedMap } from "../../../lib/memory/bounded-map.ts";
import { sha256Hex } from "../../../lib/secret.ts";
import type { SecretHolder } from "../../intake/known-secrets.ts";
import { redactBody, redactPieces } from "../../upstream/redact.ts";

export interface KnownToGateway {
  readonly credentials: readonly string[];
  /** The hashes of all keys: nothing else of them is known. */
  readonly keys: ReadonlySet<string>;
}

/** Keys and logins of the last requests: each is removed from all of them. */
const MAX_SENT = 32;
/** Prompts repeat their words. */
const MAX_PLAIN_WORDS = 50_000;
/** After an escape of JSON, however often it is escaped itself, a word begins. */
const WORD = /\\+[nrtbf"/]?|[^\s,;:=&?/|"'`<>()[\]{}\\]{8,256}/g;

export class Cleaner {
  readonly #known: SecretHolder;
  readonly #keys: ReadonlySet<string>;
  readonly #sent = new BoundedMap<string, true>(MAX_SENT);
  /** To find secrets takes tables that take milliseconds to build. */
  #senders: SecretHolder = holderOf([]);
  readonly #plain = new Set<string>();

  constructor({ credentials, keys }: KnownToGateway) {
    this.#known = holderOf(credentials);
    this.#keys = keys;
  }

  /** `own`: the key and the login of the request. */
  cleanBytes(bytes: Uint8Array, own: readonly string[]): Uint8Array {
    return this.#maskKeys(redactPieces(redactBody(bytes, this.#known), this.#addSent(own)));
  }

  cleanJson<T>(value: T, own: readonly string[]): T {
    return JSON.parse(asBuffer(this.cleanBytes(Buffer.from(JSON.stringify(value)), own)).toString());
  }

  #addSent(own: readonly string[]): SecretHolder {
    const isNew = own.some((secret) => !this.#sent.has(secret));
    for (const secret of own) this.#sent.set(secret, true);
    if (isNew) this.#senders = holderOf([...this.#sent.keys()]);
    return this.#senders;
  }

  /** Of other keys only the hashes are known, so each word is compared. */
  #maskKeys(bytes: Uint8Array): Uint8Array {
    let clean: Buffer | null = null;
    for (const { 0: word, index } of asBuffer(bytes).toString("latin1").matchAll(WORD)) {
      if (!this.#isKey(word)) continue;
      clean ??= Buffer.from(bytes);
      clean.fill("*", index, index + word.length);
    }
    return clean ?? bytes;
  }

  #isKey(word: string): boolean {
    if (this.#plain.has(word)) return false;
    if (this.#keys.has(sha256Hex(word))) return true;
    if (this.#plain.size >= MAX_PLAIN_WORDS) this.#plain.clear();
    this.#plain.add(word);
    return false;
  }
}

/** Names of fields are in lower case. */
function holderOf(secrets: readonly string[]): SecretHolder {
  const forms = new Set([...secrets, ...secrets.map((secret) => secret.toLowerCase())]);
  return { credential: "", headers: [...forms].map((secret) => ["secret", secret] as const) };
}
