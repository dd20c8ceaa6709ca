// What `gateway run` says before the tool starts: where its requests go and whether they cost money, and that the upstream
// lacks the models that the tool asks for.

import { sellerOf } from "../../billing/prices.ts";
import type { Channel, Group } from "../../config/catalog.ts";
import { fetchModels, findNamedModel, type Given, listConfiguredModels } from "./models.ts";
import type { Connection, OwnModels, Tool } from "./tool.ts";

/** One line. */
export function describeRoute(
  tool: Tool,
  { name, group }: { readonly name: string; readonly group: Group },
): string {
  const hosts = [...new Set(group.channels.map(({ baseUrl }) => baseUrl.host))];
  const title = tool.title.replace(/^the /, "The ");
  return `${title}: key ${name}, group ${group.name} (${hosts.join(", ")}), ${describeCost(group)}.`;
}

function describeCost({ usesLogin, channels, multiplier }: Group): string {
  if (usesLogin) return "with its own login, which is passed on: a plan pays";
  const paid = channels.filter(({ free }) => !free).map(({ name }) => name);
  if (paid.length === 0) return "free of charge";
  const where = paid.length === channels.length ? "" : ` on ${paid.join(", ")}`;
  const rate = multiplier === "1" ? "" : ` × ${multiplier}`;
  return `billed by use at official prices${rate}${where}`;
}

/** Null if the tool will find a model, or if that is not known. */
export async function explainModels(
  tool: Tool,
  connection: Connection,
  group: Group,
  given: Given,
): Promise<string | null> {
  const { title, ownModels, needsModels } = tool;
  const { foreign, models } = connection;
  if (ownModels !== undefined && findNamedModel(ownModels, given) !== null) return null;
  if (models.length === 0 && (needsModels === true || foreign?.main === null))
    return `No model of the group ${group.name} is known, and ${title} needs their names. If a channel has no list of its models, name them: gateway channels set ${group.channels[0]?.name} models=NAME`;
  if (ownModels === undefined || (foreign !== undefined && ownModels.isFixed !== true)) return null;
  return adviseModel(tool, ownModels, connection, group);
}

async function adviseModel(
  { name, title }: Tool,
  ownModels: OwnModels,
  connection: Connection,
  group: Group,
): Promise<string | null> {
  if (group.channels.every(isOfMaker) || replacesModels(ownModels, group)) return null;
  const { pattern, shown, flags } = ownModels;
  const models = (await fetchModels(connection))?.map(({ id }) => id) ?? listConfiguredModels(group);
  const [first] = models;
  if (first === undefined || models.some((model) => pattern.test(model))) return null;
  return (
    `The group ${group.name} has no ${shown} model, and ${title} asks for one, at least in the background. ` +
    `Name another: gateway run ${name} ${flags[0]} ${first}. Or have the group answer with its own: ` +
    `gateway groups set ${group.name} default_model=${first}`
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
