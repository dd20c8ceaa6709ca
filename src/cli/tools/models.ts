// The models that a key can call.

import { findModel, listBookedModels, loadBook, sellerOf } from "../../billing/prices.ts";
import { ALL_MAKERS } from "../../billing/prices/sellers.ts";
import { quirksOf } from "../../bridges/chat/quirks.ts";
import { findOutputCap } from "../../bridges/provider-rules.ts";
import type { Channel, Group } from "../../config/catalog.ts";
import { CHAT, CHAT_GROUP, type Platform } from "../../config/schema.ts";
import type { Environment } from "../../config/yaml/expand.ts";
import { PLATFORM_ROWS, readPathPrefix } from "../../dialects/platforms.ts";
import { resolveModel } from "../../gateway/intake/match.ts";
import { fetchAnswer } from "../../lib/http/fetch.ts";
import { getCount, getField, getList, isObject, parseJson } from "../../lib/json/json.ts";
import { isPrintable } from "../../lib/text/printable.ts";
import {
  mainMakerOf,
  type Connection,
  type Foreign,
  type ModelLimits,
  type OwnModels,
  type Tool,
} from "./tool.ts";

const LIST_WAIT_MS = 5000;
/** By this name, a replay knows that `gateway run` asks, not the tool. */
export const LIST_AGENT = "gateway-run";

export interface ListedModel extends ModelLimits {
  readonly id: string;
}

type Place = Pick<Connection, "base" | "platform" | "relayPrefix" | "secret">;

export async function fetchModels(place: Place): Promise<ListedModel[] | null> {
  const { list } = await fetchList(place);
  return isObject(list) ? readModels(list) : null;
}

export async function findPlatform(
  platforms: readonly Platform[],
  place: Omit<Place, "platform">,
): Promise<Platform | undefined> {
  const [first, ...others] = platforms;
  for (const platform of others.length === 0 ? [] : platforms) {
    const { status, list } = await fetchList({ ...place, platform });
    if (status === null) break;
    if (getField(list, PLATFORM_ROWS[platform].listMark) !== undefined) return platform;
  }
  return first;
}

export async function fetchList({ base, platform, relayPrefix, secret }: Place) {
  const path = readPathPrefix(platform, relayPrefix) + PLATFORM_ROWS[platform].dialect.listPath;
  try {
    const answer = await fetchAnswer(new URL(`${base}${path}?limit=1000&pageSize=1000`), {
      proxy: null,
      signal: AbortSignal.timeout(LIST_WAIT_MS),
      headers: {
        accept: "application/json",
        "user-agent": LIST_AGENT,
        authorization: `Bearer ${secret}`,
      },
    });
    return { status: answer.status, list: answer.ok ? parseJson(await answer.text()) : null };
  } catch {
    return { status: null, list: null };
  }
}

function readModels(list: unknown): ListedModel[] {
  return getList(getField(list, "data") ?? getField(list, "models")).flatMap((entry) => {
    const name = getField(entry, "id") ?? getField(entry, "name");
    if (typeof name !== "string" || !isPrintable(name)) return [];
    const [context, output] = [CONTEXT_FIELDS, OUTPUT_FIELDS].map((fields) =>
      fields.map((path) => getCount(path.split(".").reduce<unknown>(getField, entry))).find(Boolean),
    );
    return {
      id: name.replace(/^models\//, ""),
      context: context ?? null,
      output: output ?? null,
    };
  });
}

/** In order: the fields of OpenRouter and Together, Groq, Mistral,
 *  vLLM, Anthropic, Google and llama.cpp. */
const CONTEXT_FIELDS = [
  "context_length",
  "context_window",
  "max_context_length",
  "max_model_len",
  "max_input_tokens",
  "inputTokenLimit",
  "meta.n_ctx",
];
const OUTPUT_FIELDS = [
  "top_provider.max_completion_tokens",
  "max_completion_tokens",
  "max_output_tokens",
  "outputTokenLimit",
];

function listConfiguredModels({ channels }: Group): string[] {
  const names = channels.flatMap(({ aliases, models }) => [
    ...aliases.keys(),
    ...(models ?? []).filter((model) => !model.includes("*")),
  ]);
  return [...new Set(names.filter(isPrintable))];
}

export function describeModels(
  tool: Tool,
  group: Group,
  listed: readonly ListedModel[] | null,
  configPath: string,
): Pick<Connection, "models" | "limits" | "foreign" | "converts" | "speaksChat"> {
  const models = listed?.map(({ id }) => id) ?? listConfiguredModels(group);
  const foreign = describeForeign(tool, group, models);
  return {
    models,
    ...(listed !== null && { limits: findLimits(listed, group, configPath) }),
    ...(foreign !== null && { foreign }),
    converts: group.convert,
    speaksChat: group.platform === CHAT_GROUP && group.channels.some(isChat),
  };
}

function isChat({ platform }: Channel): boolean {
  return platform === CHAT;
}

/** Returns null if the group converts nothing, or if the tool can use its own models. */
function describeForeign({ ownModels }: Tool, group: Group, models: readonly string[]): Foreign | null {
  const { channels, convert, defaultModel } = group;
  // `anthropic/claude-…` is a reseller's name.
  const isOwn = (model: string): boolean => ownModels?.pattern.test(model) === true && !model.includes("/");
  const hasOwn = models.some(isOwn) && !channels.every(isChat);
  if (!convert || ownModels === undefined || hasOwn) return null;
  const isMakers = channels.every((channel) => ALL_MAKERS.includes(sellerOf(channel).provider ?? ""));
  const { main, small } = ownModels.asked;
  return {
    hasEffort: channels.some((channel) => !isChat(channel) || quirksOf(channel).reasoning !== "none"),
    canSearch: !channels.some(isChat),
    main:
      main.map((asked) => findAlias(group, asked)?.name).find(Boolean) ??
      defaultModel ??
      (isMakers ? null : findFirstModel(models)),
    small: findAlias(group, small)?.name ?? null,
  };
}

function findAlias({ channels }: Group, asked: string): { model: string; name: string } | null {
  for (const channel of channels) {
    const model = resolveModel(channel, asked);
    if (model !== undefined && model !== asked)
      return { model, name: resolveModel(channel, model) === model ? model : asked };
  }
  return null;
}

/** If the group passes on a login, only the price book lists its models. */
export function findNewestSmall(
  { smallModels }: Tool,
  group: Group,
  listed: readonly string[],
  configPath: string,
): string | null {
  if (smallModels === undefined) return null;
  const booked = () =>
    listBookedModels(loadBook(configPath), [mainMakerOf(group.platform)])
      .map(({ id }) => id)
      .filter((id) => group.channels.some((channel) => resolveModel(channel, id) !== undefined));
  const models = group.usesLogin ? booked() : listed;
  return findSmallModel(models.filter((model) => smallModels.test(model)));
}

/** The price book does not know users' own servers, which are free. */
function findLimits(
  listed: readonly ListedModel[],
  { channels }: Group,
  configPath: string,
): ReadonlyMap<string, ModelLimits> {
  const book = loadBook(configPath);
  return new Map(
    listed.map(({ id, context, output }) => {
      const channel = channels.find((each) => resolveModel(each, id) !== undefined);
      const name = (channel && resolveModel(channel, id)) ?? id;
      const isBooked = channel !== undefined && !channel.free;
      const booked = isBooked ? findModel(book, sellerOf(channel), name)?.model.context : null;
      return [id, { context: context ?? booked ?? null, output: output ?? findOutputCap(name) }];
    }),
  );
}

export interface Given {
  readonly words: readonly string[];
  readonly env: Environment;
}

export function describeForeignModel(
  tool: Tool,
  connection: Connection,
  group: Group,
  given: Given,
): string | null {
  const model = findRunning(tool, connection, group, given);
  if (connection.foreign === undefined || model === null) return null;
  const context = connection.limits?.get(model)?.context?.toLocaleString("en-US");
  const window = context === undefined ? "of unknown context" : `with a context of ${context} tokens`;
  return `Requests are converted. ${tool.title} runs on ${model}, ${window}.`;
}

function findRunning(tool: Tool, connection: Connection, group: Group, given: Given): string | null {
  const { models } = connection;
  const env = { ...given.env, ...tool.readVariables?.(given.env) };
  const named = tool.ownModels === undefined ? null : findNamedModel(tool.ownModels, { ...given, env });
  const asked = named === null ? mainModelOf(connection) : readShortName(named, tool, connection, env);
  if (asked === null) return null;
  const served = listServed(group, asked);
  const isKnown = models.includes(asked) || served.some((model) => model !== asked);
  const all = isKnown || group.defaultModel === null ? served : listServed(group, group.defaultModel);
  return all.find((model) => models.includes(model)) ?? all[0] ?? asked;
}

function listServed({ platform, channels }: Group, asked: string): string[] {
  const rank = (channel: Channel): number => channel.priority + (channel.platform === platform ? 0 : 1e9);
  const all = channels.toSorted((a, b) => rank(a) - rank(b));
  return all.flatMap((channel) => resolveModel(channel, asked) ?? []);
}

function readShortName(word: string, tool: Tool, connection: Connection, env: Environment): string {
  const variable = tool.ownModels?.variableOf?.(word) ?? "";
  return env[variable] || (tool.connect(connection, env).defaults?.[variable] ?? word);
}

export function findNamedModel({ variable, flags }: OwnModels, { words, env }: Given): string | null {
  // Tools use the last flag.
  for (const [index, word] of [...words.entries()].toReversed())
    for (const flag of flags) {
      if (word === flag) return words[index + 1] ?? null;
      if (word.startsWith(`${flag}=`)) return word.slice(flag.length + 1);
    }
  return (variable === null ? "" : env[variable]) || null;
}

/** Families and their kinds, best first. */
const MAIN: readonly (readonly [family: RegExp, ...kinds: RegExp[]])[] = [
  [/claude/i, /sonnet/i, /opus/i],
  [/^gpt-\d/i, /-codex$/i, /^gpt-[\d.]+$/i, /-sol$/i],
  [/gemini/i, /pro/i],
  [/gpt/i],
];
const SMALL = [/haiku/i, /-mini/i, /-nano/i, /-luna/i, /flash-lite/i, /flash/i];
const UNFIT =
  /embed|image|tts|audio|realtime|moderation|whisper|dall-e|imagen|veo|sora|transcribe|search|aqa/i;

type Choice = Pick<Connection, "models" | "ownModel" | "foreign">;

export function mainModelOf({ models, ownModel = null, foreign }: Choice): string | null {
  const isKept = ownModel !== null && models.includes(ownModel);
  return isKept ? ownModel : (foreign?.main ?? chooseMainModel(models));
}

export function smallModelOf(choice: Choice): string | null {
  return choice.foreign?.small ?? findSmallModel(choice.models) ?? mainModelOf(choice);
}

/** Takes the first that fits: the list's order says more than names. */
function findFirstModel(models: readonly string[]): string | null {
  return models.find((model) => !UNFIT.test(model)) ?? models[0] ?? null;
}

export function chooseMainModel(models: readonly string[], own: string | null = null): string | null {
  if (own !== null && models.includes(own)) return own;
  const fit = models.filter((model) => !UNFIT.test(model));
  const large = fit.filter((model) => !SMALL.some((small) => small.test(model)));
  for (const some of [large, fit])
    for (const [family, ...kinds] of MAIN) {
      const own = some.filter((model) => family.test(model));
      const best = findNewest(own, kinds);
      if (best !== null) return best;
    }
  return findFirstModel(models);
}

export function findSmallModel(models: readonly string[]): string | null {
  const fit = models.filter((model) => !UNFIT.test(model));
  return SMALL.map((small) => findNewest(fit.filter((model) => small.test(model)))).find(Boolean) ?? null;
}

/** The newest by version, kind and date. Claude's kind counts before the minor version. */
function findNewest(models: readonly string[], kinds: readonly RegExp[] = []): string | null {
  const rank = (model: string): number[] => {
    const date = /20\d{2}-?\d{2}-?\d{2}(?!\d)/.exec(model)?.[0] ?? "";
    // Longer numbers are not versions.
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
