// Names in a file for others. A client or an upstream has chosen them, so they could hold anything: what does not look like
// such a name is not shown.

import { sha256Hex } from "../../lib/secret.ts";

const NAME = /^[a-z\d][\w.:+ -]{0,63}(?:@\w{1,12})?$/i;
/** Letters, a number, or a short mixture of both. Keys and tokens are longer. */
const WORD = /^(?:[a-z]{1,20}|\d{1,8}|[a-z\d]{1,10})$/i;
const KEY = /(?:^|[^a-z])sk[-_]/i;

function isPlain(text: string): boolean {
  const words = text.split(/[^a-z\d]+/i).filter(Boolean);
  return NAME.test(text) && !KEY.test(text) && words.every((word) => WORD.test(word));
}

/** Another name gets a word that is the same in each report. */
export function showName(kind: "tool" | "version" | "model" | "window", name: string): string {
  return isPlain(name) ? name : `${kind}-${sha256Hex(name).slice(0, 8)}`;
}

/** The last part of a name with slashes, which may be a path. */
export function showModel(model: string): string {
  const last = model.split(/[\\/]+/).findLast((part) => part !== "") ?? "";
  return showName("model", last);
}

/** As upstreams make them: a usual word and a random text, or digits alone, as in a UUID. */
const ID =
  /^(?:(?:chatcmpl|cmpl|gen|msg|req|resp)[-_][\w-]{1,64}|[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}|[\da-f]{16,64}(?:-[a-z]{3})?)$/i;

/** Null: the upstream's id could be something else. */
export function showId(id: string | undefined): string | null {
  return id !== undefined && ID.test(id) && !KEY.test(id) ? id : null;
}
