// A model's name in a body that repeats what its path says: in what is embedded, and what is counted. An upstream
// wants both to be the same. Where any other request names its model is request.ts. Pure.

import {
  findFirstElements,
  readString,
  replaceSpan,
  scanTopLevel,
  type Span,
} from "../../lib/json/json-spans.ts";

/** What names a model also so. */
const PREFIX = "models/";

/** The body with `to` wherever it names `from`; null where it doesn't. */
export function renameRepeated(plain: Uint8Array, from: string, to: string): Uint8Array | null {
  let renamed: Uint8Array | null = null;
  for (const span of findNames(plain).toReversed()) {
    const name = readString(plain, span);
    if (name !== from && name !== PREFIX + from) continue;
    renamed = replaceSpan(renamed ?? plain, span, name === from ? to : PREFIX + to);
  }
  return renamed;
}

function findNames(plain: Uint8Array): Span[] {
  const whole = { start: 0, end: plain.length };
  const scan = scanTopLevel(plain, ["requests", "generateContentRequest"]);
  if (scan.kind !== "object") return [];
  const requests = scan.spans.get("requests");
  const listed = requests === undefined ? [] : findFirstElements(plain, requests, Number.POSITIVE_INFINITY);
  const counted = scan.spans.get("generateContentRequest") ?? [];
  return [whole, ...listed]
    .concat(counted)
    .flatMap((span) => findName(plain, span))
    .toSorted((a, b) => a.start - b.start);
}

function findName(plain: Uint8Array, { start, end }: Span): Span[] {
  const scan = scanTopLevel(plain.subarray(start, end), ["model"]);
  const found = scan.kind === "object" ? scan.spans.get("model") : undefined;
  return found === undefined ? [] : [{ start: start + found.start, end: start + found.end }];
}
