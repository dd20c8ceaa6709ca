// Forecasts a model's next answer and a session's next prompt, with its cached part.
// Otherwise an agent's parallel requests would reserve ten times their cost.

import { BoundedMap } from "../../lib/memory/bounded-map.ts";
import type { Identity } from "../ledger/line.ts";
import { countPrompt } from "../usage.ts";

const MAX_SAMPLES = 500;
const MAX_MODELS = 500;

interface Means {
  answers: number;
  output: number;
}

export class AnswerHistory {
  readonly #models = new BoundedMap<string, Means>(MAX_MODELS);

  add(model: string, output: number): void {
    let means = this.#models.get(model);
    if (means === undefined) this.#models.set(model, (means = { answers: 0, output: 0 }));
    means.answers = Math.min(MAX_SAMPLES, means.answers + 1);
    means.output += (output - means.output) / means.answers;
  }

  /** Null: no model of this family has answered. */
  expect(model: string): number | null {
    const means = this.#models.get(model) ?? this.#findSimilar(model);
    return means && Math.ceil(means.output);
  }

  /** Finds the model whose name agrees with this one for the most words. */
  #findSimilar(model: string): Means | null {
    const words = listWords(model);
    let most = 0;
    let similar: Means | null = null;
    for (const [name, means] of this.#models) {
      const others = listWords(name);
      const differs = words.findIndex((word, index) => word !== others[index]);
      const common = differs < 0 ? words.length : differs;
      if (common > most) [most, similar] = [common, means];
    }
    return similar;
  }
}

/** `us.anthropic.claude-opus-4-8` → claude, opus, 4, 8. */
function listWords(model: string): string[] {
  const words = model.toLowerCase().split(/[^a-z0-9]+/);
  const first = words.findIndex((word) => FAMILIES.has(word));
  return words.slice(Math.max(0, first));
}

const FAMILIES = new Set(["claude", "gpt", "gemini", "grok", "deepseek", "qwen", "mistral"]);

export interface CachedConversation {
  readonly key: string;
  readonly model: string;
  readonly client?: Identity | null | undefined;
}

export interface ExpectedPrompt {
  readonly tokens: number;
  readonly cached: number;
}

interface Kept {
  readonly cached: number;
  readonly scale: number;
  readonly at: number;
}

/** Upstreams keep a prompt in the cache at least this long. */
const KEPT_MS = 5 * 60_000;
const MAX_CONVERSATIONS = 10_000;
/** An estimate is corrected by at most this factor, up or down. */
const MAX_SCALE = 3;

export class CachedPrompts {
  readonly #kept = new BoundedMap<string, Kept>(MAX_CONVERSATIONS);

  /** `estimated`: the prompt's tokens, by its size (0: unknown). */
  add(
    conversation: CachedConversation,
    usage: Readonly<Record<string, number>>,
    at: number,
    estimated: number,
  ): void {
    const name = nameConversation(conversation);
    if (name === null) return;
    const { read, written, total } = countPrompt(usage);
    const cached = read + written;
    const scale = estimated > 0 && total > 0 ? total / estimated : 1;
    this.#kept.set(name, { cached, scale: Math.min(MAX_SCALE, Math.max(1 / MAX_SCALE, scale)), at });
  }

  expect(conversation: CachedConversation, now: number, estimated: number): ExpectedPrompt {
    const name = nameConversation(conversation);
    const kept = name === null ? undefined : this.#kept.get(name);
    // `abs`: the clock may have been set back.
    if (kept === undefined || Math.abs(now - kept.at) > KEPT_MS) return { tokens: estimated, cached: 0 };
    const tokens = Math.ceil(estimated * kept.scale);
    return { tokens, cached: Math.min(tokens, kept.cached) };
  }
}

function nameConversation({ key, model, client }: CachedConversation): string | null {
  if (client?.session === undefined) return null;
  return [key, model, client.session, client.agent ?? ""].join("\n");
}
