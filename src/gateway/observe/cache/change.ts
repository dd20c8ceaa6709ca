// Finds the first part in which a prompt differs from an earlier one of the same conversation. Pure.

import { ATTRIBUTION_SHAPE } from "../../../dialects/prompt/parts.ts";
import { MESSAGES, type Prompt, type Row, SYSTEM, TOOLS } from "../../../dialects/prompt/prompt.ts";
import type { PastTurn, Turn } from "./turn.ts";

export interface Change {
  readonly because: "tools_changed" | "system_changed" | "settings_changed" | "messages_changed";
  /** The tool, the part of the system prompt or the message, counted from 1. */
  readonly at?: number;
  /** The name of a setting. */
  readonly part?: string;
  /** How it changed: only in its order, only in its digits, or in the tool's line about itself. */
  readonly detail?: "order" | "digits" | "attribution";
}

/** How far two prompts are the same, from the first part on. */
export function countShared(a: Row<number>, b: Row<number>, most = a.length): number {
  const end = Math.min(a.length, b.length, most);
  if (a.continues(b) || b.continues(a)) return end;
  let shared = 0;
  while (shared < end && a.at(shared) === b.at(shared)) shared += 1;
  return shared;
}

/** The same for messages, of which there may be thousands. */
export function countSharedMessages({ chain: a }: Prompt, { chain: b }: Prompt): number {
  let [shared, least] = [Math.min(a.length, b.length), 0];
  for (let at = shared; shared > least; at = (shared + least + 1) >> 1)
    if (a.at(at - 1) === b.at(at - 1)) least = at;
    else shared = at - 1;
  return shared;
}

/** The same for system prompts. Claude Code's line about itself changes with every request. */
export function countSharedSystem(a: Prompt, b: Prompt, most = a.shapes.length): number {
  const [old, now] = [a.parts[SYSTEM], b.parts[SYSTEM]];
  const isLine = (at: number): boolean =>
    a.shapes.at(at) === ATTRIBUTION_SHAPE && b.shapes.at(at) === ATTRIBUTION_SHAPE;
  const end = Math.min(old.length, now.length, most);
  let shared = 0;
  while (shared < end && (old.at(shared) === now.at(shared) || isLine(shared))) shared += 1;
  return shared;
}

/** Null if all that `kept` left in the cache is still the beginning of the prompt. */
export function findChange(kept: PastTurn, turn: Turn): Change | null {
  const [before, now] = [kept.turn.prompt, turn.prompt];
  const { section } = kept.end;
  const tools = findPlace(kept, now, TOOLS, countShared(before.parts[TOOLS], now.parts[TOOLS]));
  if (tools !== null) return describeTools(before, now, tools);
  if (section < SYSTEM) return null;
  // Where something was read, the line was not part of the prompt.
  const ignoresLine = turn.dropsAttribution || turn.tokens.read > 0;
  const same = ignoresLine
    ? countSharedSystem(before, now)
    : countShared(before.parts[SYSTEM], now.parts[SYSTEM]);
  const system = findPlace(kept, now, SYSTEM, same);
  if (system !== null) return describeSystem(before, now, system);
  return section < MESSAGES ? null : findLateChange(kept, now);
}

function findLateChange(kept: PastTurn, now: Prompt): Change | null {
  const before = kept.turn.prompt;
  const setting = findSetting(before, now);
  if (setting !== null) return { because: "settings_changed", part: setting };
  // The upstream has the earlier messages.
  if (now.continues !== null) return null;
  const shared = countSharedMessages(before, now);
  const place = findPlace(kept, now, MESSAGES, shared);
  return place === null ? null : { because: "messages_changed", at: numberOf(now, place) };
}

/** The first part of a section that differs; null if the cached parts of the section are the same. */
function findPlace({ turn, end }: PastTurn, now: Prompt, section: 0 | 1 | 2, shared: number): number | null {
  const { length } = turn.prompt.parts[section];
  if (end.section === section) return shared >= end.parts ? null : shared;
  // Parts that were added at the end of a section come before the next one.
  return shared === length && now.parts[section].length === length ? null : shared;
}

function describeTools(before: Prompt, prompt: Prompt, index: number): Change {
  const [old, now] = [before.parts[TOOLS], prompt.parts[TOOLS]];
  const sorted = [old, now].map((parts) => parts.slice().toSorted((a, b) => a - b));
  const isOrder = Bun.deepEquals(sorted[0], sorted[1]);
  return { because: "tools_changed", at: index + 1, ...(isOrder && { detail: "order" }) };
}

function describeSystem(before: Prompt, prompt: Prompt, index: number): Change {
  const change = { because: "system_changed", at: index + 1 } as const;
  const [old, now] = [before.shapes.at(index), prompt.shapes.at(index)];
  if (old === undefined || old !== now) return change;
  return { ...change, detail: old === ATTRIBUTION_SHAPE ? "attribution" : "digits" };
}

function findSetting(before: Prompt, prompt: Prompt): string | null {
  const names = [...before.settings.keys(), ...prompt.settings.keys()];
  return names.find((name) => before.settings.get(name) !== prompt.settings.get(name)) ?? null;
}

/** The message of a part, or the one after the last. */
function numberOf({ numbers }: Prompt, index: number): number {
  return numbers.at(index) ?? countMessages({ numbers }) + 1;
}

export function countMessages({ numbers }: Pick<Prompt, "numbers">): number {
  return numbers.at(numbers.length - 1) ?? 0;
}
