// Plays a session in front of an upstream that caches, and analyses its requests.

import { expect } from "bun:test";
import { countPrompt } from "../../../src/billing/usage.ts";
import { DIALECTS } from "../../../src/dialects/endpoints.ts";
import { KnownParts } from "../../../src/gateway/intake/known-parts.ts";
import { ownParts, readPrompt, readSteps, scanBody } from "./prompt.ts";
import { countSameCalls } from "../../../src/dialects/prompt/same-call.ts";
import type { Miss } from "../../../src/gateway/cache/judge.ts";
import { CacheMemory } from "../../../src/gateway/cache/memory.ts";
import type { CacheTurn } from "../../../src/gateway/cache/turn.ts";
import {
  type CachingDialect,
  CachingUpstream,
  type Counted,
} from "../../harness/upstreams/caching-upstream.ts";
import { type Conversation, writeAsPython, writeRequest } from "../../harness/conversation.ts";

export { DIALECT_NAMES } from "../../../src/dialects/dialect.ts";
export const SECOND = 1000;

/** How clients write JSON: without spaces, as JavaScript does, or with spaces, as Python does. */
const WRITERS = { JavaScript: JSON.stringify, Python: writeAsPython };
export type Writer = keyof typeof WRITERS;

export type Change = Partial<Omit<CacheTurn, "prompt" | "rules" | "tokens">>;

/** The fields that most requests share. */
const FACTS = {
  agent: null,
  inferred: false,
  model: "m",
  channel: "main",
  served: "",
  reason: null,
  isKeptLong: false,
  dropsAttribution: false,
  responseId: null,
} as const;

export class Session {
  readonly upstream = new CachingUpstream();
  readonly memory = new CacheMemory();
  readonly #known = new KnownParts();
  readonly dialect: CachingDialect;
  readonly #write: (value: unknown) => string;
  now = Date.UTC(2026, 10, 20);
  last: Counted = { total: 0, read: 0, written: 0 };

  constructor(dialect: CachingDialect, writer: Writer = "JavaScript") {
    this.dialect = dialect;
    this.#write = WRITERS[writer];
  }

  ask(conversation: Conversation, change: Change = {}, session = "s"): Miss | null {
    const body = writeRequest(this.dialect, conversation);
    return this.send(body, { model: conversation.model, ...change }, session);
  }

  send(body: Record<string, unknown>, change: Change = {}, session = "s"): Miss | null {
    const { rules } = DIALECTS[this.dialect].promptLayout;
    const { model = "gemini-2.5-pro", channel = "main" } = change;
    const at = (this.now += 20 * SECOND);
    this.last = this.upstream.serve(this.dialect, body, `${model} ${channel} ${change.served}`, at);
    const { total, read, written } = this.last;
    const bytes = Buffer.from(this.#write(body));
    const layout = DIALECTS[this.dialect].promptLayout;
    const scanned = scanBody(bytes, layout, this.#known.find(session))!;
    this.#known.keep(session, scanned.scan.lists);
    const prompt = readSteps(scanned, layout)?.prompt ?? null;
    // The prompt is the same without knowledge of earlier requests.
    expect(prompt && ownParts(prompt)).toEqual(readPrompt(bytes, layout));
    // An ordinary turn must not look like a loop of equal calls.
    expect(countSameCalls(scanned, layout).count).toBeLessThanOrEqual(1);
    expect(prompt).not.toBeNull();
    const usage = { input: total - read - written, cache_read: read, cache_write_5m: written };
    return this.memory.learn(session, {
      prompt: prompt!,
      rules,
      tokens: countPrompt(usage),
      ...FACTS,
      model,
      channel,
      at,
      readyAt: at + SECOND,
      ...change,
    });
  }
}
