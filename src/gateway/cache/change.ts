// Finds the first part that differs from an earlier prompt's.

import { ATTRIBUTION_SHAPE } from "../../dialects/prompt/blocks.ts";
import type { Prompt } from "../../dialects/prompt/prompt.ts";
import type { PastTurn, CacheTurn } from "./turn.ts";

export interface Change {
  readonly because: "tools_changed" | "system_changed" | "settings_changed" | "messages_changed";
  /** The number of the tool, the message or the part of the system prompt, from 1. */
  readonly at?: number;
  readonly part?: string;
  readonly detail?: "added" | "removed" | "order" | "digits" | "attribution" | "perhaps";
}

function countShared(a: Prompt, b: Prompt, fromA = 0, fromB = 0): number {
  const end = Math.min(a.count - fromA, b.count - fromB);
  if (a.parts === b.parts && fromA === fromB) return end;
  let shared = 0;
  while (shared < end && a.parts[fromA + shared] === b.parts[fromB + shared]) shared += 1;
  return shared;
}

export function countSharedMessages(a: Prompt, b: Prompt): number {
  return countShared(a, b, a.messages, b.messages);
}

/** Claude Code's line about itself makes no difference: its hash is the same in all prompts. */
export function hasSameOpening(a: Prompt, b: Prompt): boolean {
  if (a.tools !== b.tools || a.messages !== b.messages) return false;
  for (let at = 0; at < a.messages; at += 1) if (a.parts[at] !== b.parts[at]) return false;
  return true;
}

export function countMessages({ numbers, count, messages }: Prompt): number {
  return numbers[count - messages - 1] ?? 0;
}

/** Null: the prompt begins with all that the cache has. */
export function findChange({ turn: { prompt: before }, end }: PastTurn, turn: CacheTurn): Change | null {
  const now = turn.prompt;
  const shared = Math.min(countShared(before, now), end);
  if (shared < end && shared < Math.max(before.tools, now.tools)) {
    const detail = describeTools(before, now, shared);
    return { because: "tools_changed", at: shared + 1, ...(detail && { detail }) };
  }
  const system = Math.min(shared, findLine(before, turn));
  if (system < end && system < Math.max(before.messages, now.messages))
    return describeSystem(before, now, system - before.tools);
  if (end <= before.messages) return null;
  const part = findSetting(before, now);
  if (part !== undefined) return { because: "settings_changed", part };
  // If the prompt continues a response, the upstream has the earlier messages.
  if (now.continues !== null || shared === end) return null;
  const at = shared < now.count ? now.numbers[shared - now.messages] : undefined;
  return { because: "messages_changed", at: at ?? countMessages(now) + 1 };
}

/** How many first parts are equal. If a setting changed, only those before the messages count. */
export function countSame({ turn: { prompt: before } }: PastTurn, turn: CacheTurn): number {
  const end = findSetting(before, turn.prompt) === undefined ? Infinity : before.messages;
  return Math.min(countShared(before, turn.prompt), findLine(before, turn), end);
}

function findSetting({ settings: before }: Prompt, { settings: now }: Prompt): string | undefined {
  for (const [name, hash] of before) if (now.get(name) !== hash) return name;
  for (const name of now.keys()) if (!before.has(name)) return name;
  return undefined;
}

/** Anthropic caches these with the messages. */
const WITH_MESSAGES: ReadonlySet<string> = new Set(["thinking", "tool_choice"]);

/** The name of a changed member, header or mark. The change may be why the cache was missed. */
export function findOther({ prompt: before }: CacheTurn, { prompt: now, rules }: CacheTurn): string | null {
  const names = new Set([...before.others.keys(), ...now.others.keys()]);
  for (const name of rules.marked ? names.difference(WITH_MESSAGES) : names)
    if (before.others.get(name) !== now.others.get(name)) return name;
  const [were, are] = [before, now].map(
    ({ marks, messages }) => new Set(marks.map(({ at, hash }) => (at > messages ? hash : `${at} ${hash}`))),
  );
  return Bun.deepEquals(were, are) ? null : "cache_control";
}

function describeTools(before: Prompt, now: Prompt, shared: number) {
  if (shared === before.tools) return "added";
  if (shared === now.tools) return "removed";
  return Bun.deepEquals(sortTools(before), sortTools(now)) ? "order" : null;
}

function sortTools({ parts, tools }: Prompt): readonly number[] {
  return parts.slice(0, tools).toSorted((a, b) => a - b);
}

/** Where Claude Code's line about itself is, if it changed and nothing was read from the cache. */
function findLine(before: Prompt, { prompt, dropsAttribution, tokens }: CacheTurn): number {
  const isIgnored = dropsAttribution || tokens.read > 0 || before.attribution === prompt.attribution;
  return isIgnored ? Infinity : before.tools + before.shapes.indexOf(ATTRIBUTION_SHAPE);
}

function describeSystem(before: Prompt, now: Prompt, index: number): Change {
  const shape = before.shapes[index];
  const isAlike = shape !== undefined && shape === now.shapes[index];
  const detail = shape === ATTRIBUTION_SHAPE ? "attribution" : "digits";
  return { because: "system_changed", at: index + 1, ...(isAlike && { detail }) };
}
