// Thoughts that only the upstream can read travel in the client's history, each with a proof.
// The proof depends on the channel's credential and the model's family:
// no other upstream gets them.

import { DIALECT_NAMES, type DialectName } from "../../dialects/dialect.ts";
import { asBuffer } from "../../lib/memory/bytes.ts";
import { getField, isObject, parseFlatJson, parseJson } from "../../lib/json/json.ts";
import type { Seal } from "./conversation.ts";

const ENVELOPE_START = "gw1.";

const PROOF_LENGTH = 22;
/** Real envelopes are a fraction of this. */
const MAX_ENVELOPE_LENGTH = 8 * 1024 * 1024;

export function openEnvelopes(secret: () => string, model: string, dialect: DialectName) {
  let key: Buffer | null = null;
  const findKey = (): Buffer =>
    (key ??= new Bun.CryptoHasher("sha256", `gateway envelope ${secret()}`)
      .update(nameFamily(model))
      .digest());
  const start = `${ENVELOPE_START}${DIALECT_NAMES.indexOf(dialect)}.`;
  const prove = (content: string): string =>
    new Bun.CryptoHasher("sha256", findKey())
      .update(start)
      .update(content)
      .digest("base64url")
      .slice(0, PROOF_LENGTH);
  return {
    close: (seal: Seal): string => {
      const content = Buffer.from(JSON.stringify(seal)).toString("base64url");
      return `${start}${prove(content)}.${content}`;
    },
    /** Returns null if the text was changed, or is an envelope of another upstream. */
    open: (text: unknown): Seal | null => {
      if (typeof text !== "string" || !text.startsWith(start) || text.length > MAX_ENVELOPE_LENGTH)
        return null;
      const end = start.length + PROOF_LENGTH;
      const content = text.slice(end + 1);
      if (text[end] !== "." || !isEqual(text.slice(start.length, end), prove(content))) return null;
      const seal = parseJson(Buffer.from(content, "base64url").toString());
      return isObject(seal) ? { ...seal } : null;
    },
  };
}

const QUOTED_START = `"${ENVELOPE_START}`;

/** Returns null if the body has no envelopes, or is not JSON. */
export function dropEnvelopes(body: Uint8Array | null): Uint8Array | null {
  if (body === null || !asBuffer(body).includes(QUOTED_START)) return null;
  const value = parseFlatJson(new TextDecoder().decode(body));
  return value === undefined ? null : Buffer.from(JSON.stringify(withoutEnvelopes(value)));
}

/** Also removes messages left empty. */
function withoutEnvelopes(value: unknown): unknown {
  if (Array.isArray(value))
    return value
      .filter((each) => !isSealed(each))
      .map(withoutEnvelopes)
      .filter(hasContent);
  if (!isObject(value)) return value;
  const open = Object.entries(value).filter(([, each]) => !isEnvelope(each));
  return Object.fromEntries(open.map(([name, each]) => [name, withoutEnvelopes(each)]));
}

function isEnvelope(value: unknown): boolean {
  return typeof value === "string" && value.startsWith(ENVELOPE_START);
}

/** A part with an envelope in these members is a mere thought.
 *  A part with a `thoughtSignature` loses only this member. */
function isSealed(value: unknown): boolean {
  return (
    isObject(value) && ["signature", "encrypted_content", "data"].some((name) => isEnvelope(value[name]))
  );
}

function hasContent(value: unknown): boolean {
  const content = getField(value, "content");
  return !Array.isArray(content) || content.length > 0 || getField(value, "role") === undefined;
}

/** Names that differ only in a date mean the same model. */
function nameFamily(model: string): string {
  return model.replace(/[-@](?:\d{8}|\d{4}-\d\d-\d\d|latest)$/, "");
}

/** Takes the same time wherever the two differ. */
function isEqual(one: string, other: string): boolean {
  const [a, b] = [Buffer.from(one), Buffer.from(other)];
  return a.length === b.length && crypto.timingSafeEqual(a, b);
}
