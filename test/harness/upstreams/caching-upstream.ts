// An upstream that caches prompts by the rules in its platform's documentation, not by the gateway's code.
// It works on the parsed values of a request, and counts four characters as one token.

import { getField, isObject } from "../../../src/lib/json/json.ts";

export type CachingDialect = "messages" | "responses" | "chat" | "content";

/** How one prompt was counted. */
export interface Counted {
  readonly total: number;
  readonly read: number;
  readonly written: number;
}

type Value = Record<string, unknown>;

interface Entry {
  readonly text: string;
  readonly scope: string;
  at: number;
  readonly ttl: number;
}

const MINUTE = 60_000;
const CHARACTERS = 4;
const LOOKBACK = 20;

export class CachingUpstream {
  #entries: Entry[] = [];

  /** `scope` stands for an account, a model and a tier: only requests of one scope share a cache. */
  serve(dialect: CachingDialect, body: Value, scope: string, at: number): Counted {
    return dialect === "messages"
      ? this.#serveMarked(body, scope, at)
      : this.#serveAll(dialect, body, scope, at);
  }

  /** Makes the upstream lose all that it has cached. */
  lose(): void {
    this.#entries = [];
  }

  #isKnown(text: string, scope: string, at: number): Entry | undefined {
    return this.#entries.findLast(
      (entry) => entry.scope === scope && entry.text === text && at - entry.at < entry.ttl,
    );
  }

  #serveMarked(body: Value, scope: string, at: number): Counted {
    const blocks = listBlocks(body);
    const texts: string[] = [];
    for (const { text } of blocks) texts.push((texts.at(-1) ?? "") + text);
    const marks = blocks.flatMap(({ ttl }, index) => (ttl === null ? [] : [{ index, ttl }]));
    const total = countTokens(texts.at(-1) ?? "");
    let read = 0;
    for (const { index } of marks.toReversed()) {
      for (let place = index; place >= 0 && place > index - LOOKBACK; place -= 1) {
        const known = this.#isKnown(texts[place]!, scope, at);
        if (known === undefined) continue;
        known.at = at;
        read = Math.max(read, countTokens(texts[place]!));
        break;
      }
    }
    let written = 0;
    for (const { index, ttl } of marks) {
      const tokens = countTokens(texts[index]!);
      if (tokens < 1024) continue;
      const known = this.#isKnown(texts[index]!, scope, at);
      if (known === undefined) this.#entries.push({ text: texts[index]!, scope, at, ttl });
      written = Math.max(written, tokens - read);
    }
    return { total, read, written };
  }

  #serveAll(dialect: CachingDialect, body: Value, scope: string, at: number): Counted {
    const text = listParts(dialect, body).join("\n");
    const [block, minimum] = dialect === "content" ? [1, 2048] : [128, 1024];
    let read = 0;
    for (const entry of this.#entries) {
      if (entry.scope !== scope || at - entry.at >= entry.ttl) continue;
      if (!text.startsWith(entry.text.slice(0, minimum * CHARACTERS))) continue;
      const shared = Math.floor(countTokens(entry.text.slice(0, shareOf(entry.text, text))) / block) * block;
      if (shared < minimum) continue;
      read = Math.max(read, shared);
      entry.at = at;
    }
    this.#entries.push({ text, scope, at, ttl: 5 * MINUTE });
    return { total: countTokens(text), read, written: 0 };
  }
}

function countTokens(text: string): number {
  return Math.floor(text.length / CHARACTERS);
}

function shareOf(a: string, b: string): number {
  const end = Math.min(a.length, b.length);
  let shared = 0;
  while (shared < end && a[shared] === b[shared]) shared += 1;
  return shared;
}

interface Block {
  readonly text: string;
  readonly ttl: number | null;
}

function toBlock(value: unknown, role: string): Block {
  const whole = isObject(value) ? value : { type: "text", text: value };
  const { cache_control: mark, ...block } = whole;
  const ttl = mark === undefined ? null : getField(mark, "ttl") === "1h" ? 60 * MINUTE : 5 * MINUTE;
  return { text: role + JSON.stringify(block), ttl };
}

const asList = (value: unknown): unknown[] =>
  Array.isArray(value) ? value : value === undefined ? [] : [value];

/** Each message's text includes `thinking` and `tool_choice`, because a change of these misses the cache. */
function listBlocks(body: Value): Block[] {
  const settings = JSON.stringify([body["thinking"], body["tool_choice"]]);
  return [
    ...asList(body["tools"]).map((tool) => toBlock(tool, "tool")),
    ...asList(body["system"]).map((part) => toBlock(part, "system")),
    ...asList(body["messages"]).flatMap((message) =>
      asList(getField(message, "content")).map((part) =>
        toBlock(part, settings + String(getField(message, "role"))),
      ),
    ),
  ];
}

function listParts(dialect: CachingDialect, body: Value): string[] {
  const names = {
    messages: [],
    responses: ["tools", "instructions", "input"],
    chat: ["tools", "messages"],
    content: ["tools", "systemInstruction", "contents"],
  }[dialect];
  return names.flatMap((name) => asList(body[name]).map((part) => JSON.stringify(part)));
}
