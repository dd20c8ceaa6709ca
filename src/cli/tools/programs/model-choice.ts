// Which of a group's models a tool starts with, for tools that must name one. The user can choose another in the tool.

import type { Connection } from "./tool.ts";

interface Family {
  readonly names: RegExp;
  /** The best first. A name that matches none comes last. */
  readonly kinds: readonly RegExp[];
  /** The kind counts more than the second number of a version: Sonnet 5 before Opus 5.5. */
  readonly kindFirst?: true;
}

/** Coding models of the known families, best first. */
const MAIN: readonly Family[] = [
  { names: /claude/i, kinds: [/sonnet/i, /opus/i], kindFirst: true },
  { names: /^gpt-\d/i, kinds: [/-codex$/i, /^gpt-[\d.]+$/i, /-sol$/i] },
  { names: /gemini/i, kinds: [/pro/i] },
  { names: /gpt/i, kinds: [] },
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
    for (const family of MAIN) {
      const [best] = some.filter((model) => family.names.test(model)).toSorted(compareIn(family));
      if (best !== undefined) return best;
    }
  return fit[0] ?? models[0] ?? null;
}

/** For titles and summaries. */
export function chooseSmallModel(models: readonly string[]): string | null {
  return findSmallModel(models) ?? chooseMainModel(models);
}

export function findSmallModel(models: readonly string[]): string | null {
  const fit = models.filter((model) => !UNFIT.test(model));
  for (const small of SMALL) {
    const [newest] = fit
      .filter((model) => small.test(model))
      .toSorted(compareIn({ names: small, kinds: [] }));
    if (newest !== undefined) return newest;
  }
  return null;
}

function compareIn({ kinds, kindFirst }: Family): (a: string, b: string) => number {
  const rank = (model: string): number => {
    const kind = kinds.findIndex((each) => each.test(model));
    return kind < 0 ? kinds.length : kind;
  };
  return (a, b) => {
    const [one, other] = [readVersion(a), readVersion(b)];
    const byKind = rank(a) - rank(b);
    const byMinor = other.minor - one.minor;
    return (
      other.major - one.major ||
      (kindFirst === true ? byKind || byMinor : byMinor || byKind) ||
      other.date - one.date ||
      (a < b ? -1 : 1)
    );
  };
}

interface Version {
  readonly major: number;
  readonly minor: number;
  /** 20250929. A name without a date is that of the newest. */
  readonly date: number;
}

/** `claude-sonnet-4-5-20250929`, `gpt-4o-2024-08-06`, `gemini-2.5-pro`. A number of more digits is not a version. */
function readVersion(model: string): Version {
  const [date] = /20\d{2}-?\d{2}-?\d{2}(?!\d)/.exec(model) ?? [];
  const bare = date === undefined ? model : model.replace(date, "");
  const [, major, minor] = /(?<![\d.])(\d{1,2})(?:[.-](\d{1,2})(?![\d]))?(?!\d)/.exec(bare) ?? [];
  return {
    major: Number(major ?? 0),
    minor: Number(minor ?? 0),
    date: date === undefined ? Infinity : Number(date.replaceAll("-", "")),
  };
}
