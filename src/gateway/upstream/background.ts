// Responses that continue after their request has ended (`background` of the responses dialect). Their usage is known
// only to a later request that fetches them finished: that request's line carries the charge, on the terms kept here.
// In memory only, and bounded.

import type { ClientIdentity, LineDraft } from "../../billing/ledger/line.ts";
import type { Overrides } from "../../billing/prices.ts";
import type { Key } from "../../config/catalog.ts";
import type { Candidate } from "../intake/match.ts";
import { BoundedMap } from "../../lib/memory/bounded-map.ts";

/** What the charge of an unfinished response depends on. */
export interface ChargeTerms {
  readonly admitted: Key;
  readonly model: string | null;
  readonly candidates: readonly Candidate[];
  /** Who sent the request that began the response. */
  readonly client: ClientIdentity;
  /** The upstream's name for the model that was requested. */
  readonly requested: string | null;
  /** The config's prices at that time. */
  readonly overrides: Overrides;
  /** The estimate that limits count until then. */
  readonly replaces: LineDraft["replaces"];
}

const MAX_RESPONSES = 10_000;

/** By the response's id. */
export function createBackground(): BoundedMap<string, ChargeTerms> {
  return new BoundedMap(MAX_RESPONSES);
}
