// Which models a ledger has seen, and through which channels.

import { UTC } from "../../lib/text/zone.ts";
import { listGroups } from "../index/groups.ts";
import type { LedgerIndex } from "../index/ledger-index.ts";

export interface SeenModel {
  readonly channel: string;
  /** As clients called it. */
  readonly model: string;
  /** As the answers to it call it, whose usage is known: they are priced by this name first. */
  readonly answeredBy: Set<string>;
  requests: number;
}

/** An upstream can invent a name for each answer. */
const MAX_ANSWERED_BY = 100;

/** An absent ledger has seen none. */
export function listSeenModels(index: LedgerIndex): readonly SeenModel[] {
  const seen = new Map<string, SeenModel>();
  for (const { traits, requests } of listGroups(index, {
    since: null,
    until: null,
    zone: UTC,
    bySender: false,
  })) {
    const { type, channel, model, answeredBy, basis } = traits;
    if (type !== "request" || model === "") continue;
    const id = `${channel}\n${model}`;
    const known = seen.get(id) ?? { channel, model, answeredBy: new Set(), requests: 0 };
    known.requests += requests;
    if (answeredBy !== "" && basis !== "unknown" && known.answeredBy.size < MAX_ANSWERED_BY)
      known.answeredBy.add(answeredBy);
    seen.set(id, known);
  }
  return [...seen.values()];
}
