// A `models` list and a USD limit depend on the model that the gateway reads. A body in which another parser may find
// another model is refused then. Everywhere else it is the upstream's to judge.

import { hasUsdLimit } from "../../billing/limits/limits.ts";
import { GatewayError } from "../../lib/errors.ts";
import { findDifferences } from "../../lib/json/json-differences.ts";
import { readString, scanTopLevel } from "../../lib/json/json-spans.ts";
import type { RequestBody } from "./body.ts";
import type { Match } from "./match.ts";

const MODEL: ReadonlySet<string> = new Set(["model"]);

export function requireOneModel({ plain, model, modelSpan }: RequestBody, match: Match): void {
  if (plain === null || model === null || !dependsOnModel(match)) return;
  const { isForeign, members } = findDifferences(plain, MODEL);
  if (isForeign)
    throw refuse("The body is not strict JSON: it has a comment or another byte that JSON does not allow.");
  const expected = modelSpan === null && !repeatsModel(plain, model) ? 0 : 1;
  if (members > expected) throw refuse("The body names the model more than once, in different spellings.");
}

function dependsOnModel({ key, group }: Match): boolean {
  const isFiltered = group.channels.some(({ models }) => models !== null);
  return isFiltered || hasUsdLimit(key.limits) || hasUsdLimit(group.limits);
}

/** Where the path names the model, some requests repeat it in the body. */
function repeatsModel(plain: Uint8Array, model: string): boolean {
  const scan = scanTopLevel(plain, ["model"]);
  const span = scan.kind === "object" ? scan.spans.get("model") : undefined;
  const name = span === undefined ? null : readString(plain, span);
  return name === model || name === `models/${model}`;
}

function refuse(text: string): GatewayError {
  const why =
    "This key may only call certain models, or has a limit in USD, so the model must be unambiguous.";
  return new GatewayError("bad_request", `${text} ${why}`, { param: "model" });
}
