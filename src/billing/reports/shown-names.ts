// Names in a file for others. A client or an upstream has chosen them, so they could hold anything. A name is one word: what
// has a blank, or could be a path, is not shown.

import { looksSecret, sha256Hex } from "../../lib/secret.ts";
import { loadPriceBook } from "../prices.ts";

const NAME = /^[a-z\d][\w.+-]{0,63}(?::[\w.-]{1,20})?(?:@\w{1,12})?(?:\[1m\])?$/i;
/** Longer than a word, a number, or a mixture of both in a name. */
const LONG = /[a-z]{21}|\d{9}|(?=[a-z]*\d)(?=\d*[a-z])[a-z\d]{11}/i;

/** Another name gets a word that is the same in each report. */
export function showName(kind: "tool" | "version" | "model", name: string): string {
  const isPlain = NAME.test(name) && !LONG.test(name) && !looksSecret(name);
  return isPlain ? name : `${kind}-${sha256Hex(name).slice(0, 8)}`;
}

/** The last part of a name with slashes, if a price list has it: otherwise it may be a path. */
export function showModel(model: string): string {
  const book = loadPriceBook();
  const isListed = model.includes("/") && book.providers.some((provider) => book.find(provider, model));
  return showName("model", isListed ? model.slice(model.lastIndexOf("/") + 1) : model);
}

/** As upstreams make them: a usual word and a random text, or digits alone, as in a UUID. */
const ID =
  /^(?:(?:chatcmpl|cmpl|gen|msg|req|resp)[-_][\w-]{1,64}|[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}|[\da-f]{16,64}(?:-[a-z]{3})?)$/i;

/** Null: the upstream's id could be something else. */
export function showId(id: string | undefined): string | null {
  return id !== undefined && ID.test(id) && !looksSecret(id) ? id : null;
}
