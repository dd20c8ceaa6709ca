// Estimates a prompt's tokens from its bytes: for limits, and for responses cut before their usage.

import { asBuffer } from "../lib/memory/bytes.ts";

const BYTES_PER_TOKEN = 4;
/** Any picture or document in base64 counts as this many tokens. */
const TOKENS_PER_ATTACHMENT = 1500;
const ATTACHMENT = Buffer.from(";base64,");
const QUOTE = 0x22;

export function estimateInputTokens(body: Uint8Array): number {
  const bytes = asBuffer(body);
  let attached = 0;
  let attachments = 0;
  for (let at = bytes.indexOf(ATTACHMENT); at >= 0; at = bytes.indexOf(ATTACHMENT, at)) {
    const close = bytes.indexOf(QUOTE, at);
    const end = close < 0 ? bytes.length : close;
    attached += end - at;
    attachments += 1;
    at = end;
  }
  return Math.ceil((bytes.length - attached) / BYTES_PER_TOKEN) + attachments * TOKENS_PER_ATTACHMENT;
}
