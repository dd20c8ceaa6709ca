// A tool on models that are not those of its maker: what the group's channels offer, and how long the models' windows are.

import { findModel, listBookedModels, loadPriceBook, sellerOf } from "../../billing/prices.ts";
import { ALL_MAKERS } from "../../billing/prices/sellers.ts";
import { quirksOf } from "../../bridges/chat/quirks.ts";
import { findOutputCap } from "../../bridges/neutral/effort.ts";
import type { Channel, Group } from "../../config/catalog.ts";
import { CHAT, CHAT_GROUP } from "../../config/schema.ts";
import { resolveModel } from "../../gateway/intake/match.ts";
import { listConfiguredModels, type ListedModel } from "./model-names.ts";
import {
  type Connection,
  type Foreign,
  mainMakerOf,
  type ModelLimits,
  type OwnModels,
  type Tool,
} from "./programs/tool.ts";
import { findFirstModel, findSmallModel, mainModelOf } from "./programs/model-choice.ts";
import type { Environment } from "../../config/yaml/expand.ts";

/** `listed`: by the gateway; null: not known. */
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

/** Null: the tool finds models that it knows, on channels that can do the same, or it gets their names in any case. */
function describeForeign({ ownModels }: Tool, group: Group, models: readonly string[]): Foreign | null {
  // `anthropic/claude-…` is the name of a reseller, for which no tool asks by itself.
  const isOwn = (model: string): boolean => ownModels?.pattern.test(model) === true && !model.includes("/");
  const hasOwn = models.some(isOwn) && !group.channels.every(isChat);
  if (!group.convert || ownModels === undefined || hasOwn) return null;
  return {
    hasEffort: group.channels.some((channel) => !isChat(channel) || quirksOf(channel).reasoning !== "none"),
    canSearch: !group.channels.some(isChat),
    main:
      ownModels.asked.main.map((asked) => findAlias(group, asked)).find(Boolean) ??
      chooseDefault(group, models),
    small: findAlias(group, ownModels.asked.small),
  };
}

/** What the config has a channel make of this name; null: nothing that the tool could name itself. */
function findAlias({ channels }: Group, asked: string): string | null {
  for (const channel of channels) {
    const model = resolveModel(channel, asked);
    if (model !== undefined && model !== asked && resolveModel(channel, model) !== undefined) return model;
  }
  return null;
}

function chooseDefault({ defaultModel, channels }: Group, models: readonly string[]): string | null {
  const isMakers = channels.every((channel) => ALL_MAKERS.includes(sellerOf(channel).provider ?? ""));
  return defaultModel ?? (isMakers ? null : findFirstModel(models));
}

/** The newest of the models for the tool's small requests that the group has. With a login, there is no list to ask for: the
 *  price book knows the maker's models then. */
export function findNewestSmall(
  { smallModels }: Tool,
  group: Group,
  listed: readonly string[],
  configPath: string,
): string | null {
  if (smallModels === undefined) return null;
  const booked = () =>
    listBookedModels(loadPriceBook(configPath), [mainMakerOf(group.platform)])
      .map(({ id }) => id)
      .filter((id) => group.channels.some((channel) => resolveModel(channel, id) !== undefined));
  const models = group.usesLogin ? booked() : listed;
  return findSmallModel(models.filter((model) => smallModels.test(model)));
}

/** What the upstream says of each model, or else what the price book does. A server of one's own has the window that it was
 *  started with, which the book does not know. */
function findLimits(
  listed: readonly ListedModel[],
  { channels }: Group,
  configPath: string,
): ReadonlyMap<string, ModelLimits> {
  const book = loadPriceBook(configPath);
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

/** One line: the model that a tool runs on, and its context window. */
export function describeForeignModel(
  tool: Tool,
  connection: Connection,
  group: Group,
  { words, env }: { readonly words: readonly string[]; readonly env: Environment },
): string | null {
  const { title, ownModels } = tool;
  const named = ownModels === undefined ? null : findNamedModel(ownModels, words, env);
  const asked = named === null ? null : readShortName(named, tool, connection, env);
  const model = asked === null ? mainModelOf(connection) : findServed(asked, connection, group);
  if (connection.foreign === undefined || model === null) return null;
  const context = connection.limits?.get(model)?.context ?? null;
  const window =
    context === null
      ? "whose context window is not known"
      : `with a context of ${context.toLocaleString("en-US")} tokens`;
  return `Requests are converted. ${title} runs on ${model}, ${window}.`;
}

/** A word such as `sonnet` stands for what a variable names. */
function readShortName(word: string, tool: Tool, connection: Connection, env: Environment): string {
  const variable = tool.ownModels?.variableOf?.(word) ?? "";
  return env[variable] || (tool.connect(connection).defaults?.[variable] ?? word);
}

function findServed(asked: string, { models }: Connection, group: Group): string {
  return findAlias(group, asked) ?? (models.includes(asked) ? asked : (group.defaultModel ?? asked));
}

/** The model that the user names for this run; null: none. */
export function findNamedModel(
  { variable, flags }: OwnModels,
  words: readonly string[],
  env: Environment,
): string | null {
  for (const [index, word] of words.entries())
    for (const flag of flags) {
      if (word === flag) return words[index + 1] ?? null;
      if (word.startsWith(`${flag}=`)) return word.slice(flag.length + 1);
    }
  return (variable === null ? "" : env[variable]) || null;
}
