// Which of a group's models a tool starts with, for tools that must name one. The user can choose another in the tool.

import type { Connection } from "./tool.ts";

/** Coding models of the known families, best first; then the kinds of each, best first. */
const MAIN: readonly (readonly [family: RegExp, ...kinds: RegExp[]])[] = [
  [/claude/i, /sonnet/i, /opus/i],
  [/^gpt-\d/i, /-codex$/i, /^gpt-[\d.]+$/i, /-sol$/i],
  [/gemini/i, /pro/i],
  [/gpt/i],
];
const SMALL = [/haiku/i, /-mini/i, /-nano/i, /-luna/i, /flash-lite/i, /flash/i];
/** Models that cannot hold a conversation with tools. */
const UNFIT =
  /embed|image|tts|audio|realtime|moderation|whisper|dall-e|imagen|veo|sora|transcribe|search|aqa/i;

type Choice = Pick<Connection, "models" | "ownModel" | "foreign">;

/** What the user's settings name comes first, then what the config does. */
export function mainModelOf({ models, ownModel = null, foreign }: Choice): string | null {
  const isKept = ownModel !== null && models.includes(ownModel);
  return isKept ? ownModel : (foreign?.main ?? chooseMainModel(models));
}

export function smallModelOf(choice: Choice): string | null {
  return choice.foreign?.small ?? findSmallModel(choice.models) ?? mainModelOf(choice);
}

/** The first that can hold a conversation: in a list that is not a maker's own, its order says more than names. */
export function findFirstModel(models: readonly string[]): string | null {
  return models.find((model) => !UNFIT.test(model)) ?? models[0] ?? null;
}

/** The user's own choice if the gateway lists it, and otherwise the newest of the best family. Null when no model is
 *  known. */
export function chooseMainModel(models: readonly string[], own: string | null = null): string | null {
  if (own !== null && models.includes(own)) return own;
  const fit = models.filter((model) => !UNFIT.test(model));
  const large = fit.filter((model) => !SMALL.some((small) => small.test(model)));
  for (const some of [large, fit])
    for (const [family, ...kinds] of MAIN) {
      const best = findNewest(
        some.filter((model) => family.test(model)),
        kinds,
      );
      if (best !== null) return best;
    }
  return findFirstModel(models);
}

/** For titles and summaries. */
export function findSmallModel(models: readonly string[]): string | null {
  const fit = models.filter((model) => !UNFIT.test(model));
  return SMALL.map((small) => findNewest(fit.filter((model) => small.test(model)))).find(Boolean) ?? null;
}

/** By its major version, then by its kind, then by the rest of its version, then by its date: a name without one is that of
 *  the newest. */
function findNewest(models: readonly string[], kinds: readonly RegExp[] = []): string | null {
  const rank = (model: string): number[] => {
    const date = /20\d{2}-?\d{2}-?\d{2}(?!\d)/.exec(model)?.[0] ?? "";
    // `claude-sonnet-4-5`, `gpt-4o`, `gemini-2.5-pro`. A number of more digits is not a version.
    const [, major = 0, minor = 0] =
      /(?<![\d.])(\d{1,2})(?:[.-](\d{1,2})(?![\d]))?(?!\d)/.exec(model.replace(date, "")) ?? [];
    const kind = kinds.findIndex((each) => each.test(model));
    const byKind = kind < 0 ? -kinds.length : -kind;
    const isClaude = model.toLowerCase().includes("claude");
    const version = isClaude ? [byKind, Number(minor)] : [Number(minor), byKind];
    return [Number(major), ...version, date === "" ? Infinity : Number(date.replaceAll("-", ""))];
  };
  const [best = null] = models.toSorted((a, b) => {
    const [one, other] = [rank(a), rank(b)];
    const at = one.findIndex((part, index) => part !== other[index]);
    return at < 0 ? (a < b ? -1 : 1) : (other[at] ?? 0) - (one[at] ?? 0);
  });
  return best;
}
