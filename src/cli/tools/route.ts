// What `gateway run` says before the tool starts: where its requests go and whether they cost money, and that the upstream
// lacks the models that the tool asks for.

import { sellerOf } from "../../billing/prices.ts";
import type { Channel, Group } from "../../config/catalog.ts";
import type { Environment } from "../../config/yaml/expand.ts";
import { findNamedModel } from "./foreign.ts";
import { fetchModels, listConfiguredModels } from "./model-names.ts";
import type { Connection, OwnModels, Tool } from "./programs/tool.ts";

/** One line. */
export function describeRoute(
  tool: Tool,
  { name, group }: { readonly name: string; readonly group: Group },
): string {
  const hosts = [...new Set(group.channels.map(({ baseUrl }) => baseUrl.host))];
  const title = tool.title.replace(/^the /, "The ");
  return `${title}: key ${name}, group ${group.name} (${hosts.join(", ")}), ${describeCost(group)}.`;
}

function describeCost(group: Group): string {
  if (group.usesLogin) return "with its own login, which is passed on: a plan pays";
  if (isFree(group)) return "free of charge";
  const paid = group.channels.filter(({ free }) => !free).map(({ name }) => name);
  const where = paid.length === group.channels.length ? "" : ` on ${paid.join(", ")}`;
  const rate = group.multiplier === "1" ? "" : ` × ${group.multiplier}`;
  return `billed by use at official prices${rate}${where}`;
}

function isFree({ channels }: Group): boolean {
  return channels.length > 0 && channels.every(({ free }) => free);
}

/** Null if the tool will find a model, or if that is not known. */
export async function explainModels(
  tool: Tool,
  connection: Connection,
  group: Group,
  { words, env }: { readonly words: readonly string[]; readonly env: Environment },
): Promise<string | null> {
  const { ownModels } = tool;
  if (ownModels !== undefined && findNamedModel(ownModels, words, env) !== null) return null;
  if (lacksNames(tool, connection)) return adviseNames(tool, group);
  if (ownModels === undefined || findsModels(ownModels, connection, group)) return null;
  const models = (await fetchModels(connection))?.map(({ id }) => id) ?? listConfiguredModels(group);
  const [first] = models;
  if (first === undefined || models.some((model) => ownModels.pattern.test(model))) return null;
  return connection.foreign === undefined
    ? adviseModel(tool, ownModels, group, first)
    : `In the background, ${tool.title} asks for ${ownModels.shown} models. To have the group answer these with its own: gateway groups set ${group.name} default_model=${first}`;
}

function findsModels(own: OwnModels, { foreign }: Connection, group: Group): boolean {
  const isTold = foreign !== undefined && own.isFixed !== true;
  return isTold || group.channels.every(isOfMaker) || replacesModels(own, group);
}

/** It is to be told the names of models, and there are none. */
function lacksNames({ needsModels }: Tool, { models, foreign }: Connection): boolean {
  return models.length === 0 && (needsModels === true || foreign !== undefined);
}

function adviseNames({ title }: Tool, { name, channels: [channel] }: Group): string {
  return `No model of the group ${name} is known, and ${title} needs their names. If a channel has no list of its models, name them: gateway channels set ${channel?.name} models=NAME`;
}

function adviseModel(
  { name, title }: Tool,
  { shown, flags }: OwnModels,
  group: Group,
  model: string,
): string {
  const [flag = ""] = flags;
  const [channel] = group.channels;
  return (
    `The group ${group.name} has no ${shown} model, and ${title} asks for one unless you name another: ` +
    `gateway run ${name} ${flag} ${model}. Or let the channel translate the name that it asks for: ` +
    `gateway channels set ${channel?.name} 'aliases.${shown.replace("…", "*")}=${model}'`
  );
}

/** A model that the upstream lacks becomes another one. */
function replacesModels({ pattern }: OwnModels, { defaultModel, channels }: Group): boolean {
  return (
    defaultModel !== null || channels.some((each) => each.aliasGlobs.some(([glob]) => pattern.test(glob)))
  );
}

/** The maker's own API has its models. */
function isOfMaker(channel: Channel): boolean {
  const { provider, makers } = sellerOf(channel);
  return provider !== null && makers.includes(provider);
}
