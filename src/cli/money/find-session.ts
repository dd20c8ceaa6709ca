// Finds a session by the part of its id that a person has.

import type { LedgerIndex } from "../../billing/index/ledger-index.ts";
import { findLastSession, listSessions } from "../../billing/report/sessions.ts";
import { fail } from "../terminal/terminal.ts";
import { lengthenSession } from "../terminal/text.ts";

const MAX_CANDIDATES = 10;

/** `words`: the id, its beginning, or `last`. */
export function findSession(index: LedgerIndex, words: string): string {
  const { path } = index;
  if (words === "last") return findLastSession(path) ?? fail(`No request in ${path} has a session yet.`);
  const [id, ...others] = listSessions(index, lengthenSession(words), MAX_CANDIDATES);
  if (id === undefined) return fail(`There is no session ${words} in ${path}.`);
  if (others.length === 0) return id;
  return fail(`Several sessions begin with ${words}. Use more of the id:\n  ${[id, ...others].join("\n  ")}`);
}
