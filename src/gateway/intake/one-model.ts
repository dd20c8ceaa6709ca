// An alias, a `models` list and a USD limit depend on the model that the gateway reads. A body in which another parser may
// find another model is refused then. Everywhere else it is the upstream's to judge.

import { hasUsdLimit } from "../../billing/limits/limits.ts";
import type { Key } from "../../config/catalog.ts";
import { GatewayError } from "../../lib/errors.ts";
import { readString } from "../../lib/json/scanner.ts";
import type { ScannedBody } from "../../dialects/prompt/read-prompt.ts";

/** `model`: what the gateway has found, in the path or in the body. */
export function requireOneModel({ bytes, scan }: ScannedBody, model: string): void {
  if (scan.isForeign)
    throw refuse("The body is not strict JSON: it has a comment or another byte that JSON does not allow.");
  // Where the path names the model, some requests repeat it in the body.
  const span = scan.get("model");
  const name = span === undefined ? null : readString(bytes, span);
  const expected = name === model || name === `models/${model}` ? 1 : 0;
  if (scan.spellings > expected)
    throw refuse("The body names the model more than once, in different spellings.");
}

export function dependsOnModel({ group, limits }: Key): boolean {
  const isChosen = group.channels.some(
    ({ models, aliases, aliasGlobs }) => models !== null || aliases.size + aliasGlobs.length > 0,
  );
  return isChosen || hasUsdLimit(limits) || hasUsdLimit(group.limits);
}

function refuse(text: string): GatewayError {
  const why =
    "This key may only call certain models, or has an alias or a limit in USD, so the model must be unambiguous.";
  return new GatewayError("bad_request", `${text} ${why}`, { param: "model" });
}
