// A model's names in price lists. Rules remove what does not change the model.

interface Rule {
  readonly pattern: RegExp;
  readonly when?: RegExp;
  /** If absent, the pattern's first group is the maker. */
  readonly maker?: string;
  /** These providers price both forms of a name, so the rule does not apply to them. */
  readonly except?: readonly string[];
}

export const NAMED_MAKERS =
  "anthropic openai google x-ai deepseek moonshotai minimax mistral zai cohere perplexity".split(" ");

/** What relays call a maker, and what the price book calls it. */
const MAKERS: ReadonlyMap<string, string> = new Map([
  ...NAMED_MAKERS.map((maker) => [maker, maker] as const),
  ["xai", "x-ai"],
  ["deepseek-ai", "deepseek"],
  ["moonshot", "moonshotai"],
  ["mistralai", "mistral"],
  ["z-ai", "zai"],
  ["zai-org", "zai"],
]);

/** A version, as in `gpt-5`, `4o`, `2512`. `8b` is a size. */
const VERSION = /(?:^|[-/.~])(?!\d+(?:\.\d+)?[bm](?![a-z0-9]))[a-z]*\d/;

/** `mistral-large-latest` moves. `grok-4-latest` is one version. */
export function isMovingName(id: string): boolean {
  return id.endsWith(LATEST) && !VERSION.test(id);
}

export const LATEST = "-latest";

const PREFIXES: readonly Rule[] = [
  // The resource name of a model: https://ai.google.dev/api/models
  { pattern: /^models\// },
  // https://cloud.google.com/vertex-ai/generative-ai/docs/partner-models/claude/use-claude
  { pattern: /^(?:projects\/[^/]+\/locations\/[^/]+\/)?publishers\/([^/]+)\/models\// },
  // https://docs.aws.amazon.com/bedrock/latest/userguide/inference-profiles-support.html
  // Only Amazon's own price list has prices by region.
  { pattern: /^(?:us|eu|apac|jp|au|us-gov|global)\.(?=[a-z0-9-]+\.)/, except: ["aws"] },
  { pattern: /^anthropic\./, maker: "anthropic" },
  { pattern: /^openai\./, maker: "openai" },
  // https://openrouter.ai/docs/overview/models, as most relays write it
  ...Array.from(MAKERS, ([prefix, maker]): Rule => ({ pattern: new RegExp(`^${prefix}/`, "i"), maker })),
];

const SUFFIXES: readonly Rule[] = [
  // https://openrouter.ai/docs/guides/routing/model-variants
  { pattern: /:(?:free|beta)$/ },
  // The window of a million tokens: https://code.claude.com/docs/en/model-config
  { pattern: /\[1m\]$/ },
  // Relays switch thinking on by the name: https://docs.apiyi.com/en/models/claude-fable-5-1
  // Other makers' names with this end are other models: qwen3-…-thinking, kimi-k2-thinking.
  { pattern: /-thinking$/, when: /(?:^|[./])claude-/ },
  // https://docs.aws.amazon.com/bedrock/latest/userguide/models-supported.html
  // A few of Bedrock's names have no second number: anthropic.claude-opus-4-6-v1.
  { pattern: /-v\d+$/, when: /^(?:[a-z-]+[./])*anthropic\./ },
  { pattern: /-v\d+:\d+$/ },
  // An alias: https://platform.claude.com/docs/en/about-claude/models/overview
  // A name without a version keeps it: nobody knows which model that is.
  { pattern: /-latest$/, when: VERSION },
  // Snapshots cost as much as stable versions: https://ai.google.dev/gemini-api/docs/models
  { pattern: /(?:[-@]20\d{6}|-20\d\d-\d\d-\d\d|-00\d|@default)$/ },
];

export type ModelNames = ReturnType<typeof listNames>;

/** Names with more decorations do not occur. */
const MAX_STEPS = 6;

/** Lists longer names first, because a snapshot may have its own price.
 * `provider`: null for any. `maker`: null if unknown. */
export function listNames(model: string, provider: string | null) {
  const names = new Set<string>();
  let maker: string | null = null;
  for (const shorter of peel(model, SUFFIXES, provider).names) {
    const peeled = peel(shorter, PREFIXES, provider);
    for (const name of peeled.names) names.add(name);
    maker ??= peeled.maker;
  }
  return { names: [...names], maker };
}

/** Whether two names differ only in decorations and the order of words. */
export function isSameModel(one: string, other: string): boolean {
  if (one === other) return true;
  const names = new Set(listNames(one, null).names.map(sortWords));
  return listNames(other, null).names.some((name) => names.has(sortWords(name)));
}

function sortWords(name: string): string {
  const words = name.toLowerCase().split(/[^a-z0-9]+/);
  return words.sort().join(" ");
}

function peel(model: string, rules: readonly Rule[], provider: string | null) {
  const names = [model];
  let name = model;
  let maker: string | null = null;
  while (names.length <= MAX_STEPS) {
    const rule = rules.find((each) => applies(each, name, provider));
    if (rule === undefined) break;
    const made = rule.pattern.exec(name)?.[1] ?? "";
    maker ??= rule.maker ?? MAKERS.get(made) ?? null;
    name = name.replace(rule.pattern, "");
    names.push(name);
  }
  return { names, maker };
}

function applies({ pattern, when, except }: Rule, name: string, provider: string | null): boolean {
  if (provider !== null && except?.includes(provider) === true) return false;
  if (when?.test(name) === false) return false;
  const found = pattern.exec(name);
  return found !== null && found[0].length < name.length;
}
