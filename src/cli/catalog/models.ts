// The action of `gateway models`: asks the channels of one group, or of every
// selectable group, for their models, and shows what each model costs.

import { getErrorMessage } from "../../lib/errors.ts";
import { findPrice, loadPriceBook, type Price, type PriceBook, sellerOf } from "../../billing/prices.ts";
import type { Catalog, Group } from "../../config/catalog.ts";
import { loadWithCredentials } from "../../config/file/load.ts";
import { findConfig } from "../../config/file/find.ts";
import { resolveModel } from "../../gateway/intake/match.ts";
import { listGroup, ModelLists, type ServedModel } from "../../gateway/channels/model-list.ts";
import { createClient } from "../../lib/http/client.ts";
import { listSelectableGroups, requireSelectable } from "../../config/changes/keys.ts";
import { explainNoGroups, explainUnusable } from "../keys/group-choice.ts";
import { findKey } from "../../config/changes/names.ts";
import { type ListFlags } from "../access/config.ts";
import { fail, refuseUsage, printNote } from "../terminal/terminal.ts";

export interface ModelsFlags extends ListFlags {
  readonly group?: string;
  readonly keyName?: string;
}

interface PricedModel {
  readonly group: Group;
  readonly model: ServedModel;
  readonly price: Price | null;
  /** Its channel costs nothing. */
  readonly free: boolean;
}

export async function showModels(flags: ModelsFlags) {
  const { catalog, path } = await loadWithCredentials(findConfig(flags.config, process.env), process.env);
  const book = loadPriceBook(path);
  const groups = chooseGroups(flags, catalog);
  if (groups.length === 0) printNote(explainNoGroups(catalog));
  const client = createClient();
  const lists = askEachChannelOnce(new ModelLists(client));
  const listed: PricedModel[] = [];
  for (const group of groups) listed.push(...(await listModels(group, { catalog, book }, lists)));
  client.close();
  for (const problem of lists.problems.values()) printNote(problem);
  const notes = [
    "Prices are official, in USD per million tokens. A charge is the price times the multiplier.",
  ];
  return { rows: listed.map(describe), notes };
}

function chooseGroups({ group, keyName }: ModelsFlags, catalog: Catalog): Group[] {
  if (group !== undefined && keyName !== undefined)
    return refuseUsage("--group and --key-name exclude each other.");
  const now = new Date();
  if (group !== undefined) return [requireSelectable(catalog, group, now)];
  if (keyName === undefined) return listSelectableGroups(catalog, now);
  const { key } = findKey(catalog, keyName);
  const unusable = explainUnusable(key, now);
  return unusable === null ? [key.group] : fail(unusable);
}

interface ChannelLists {
  readonly lists: Pick<ModelLists, "ofChannel">;
  /** By the channel's name. */
  readonly problems: Map<string, string>;
}

/** Groups share channels: this asks each channel once and reports its problem once. */
function askEachChannelOnce(lists: ModelLists): ChannelLists {
  const problems = new Map<string, string>();
  const pending = new Map<string, ReturnType<ModelLists["ofChannel"]>>();
  const ask: ModelLists["ofChannel"] = async (channel) => {
    const list = await lists.ofChannel(channel);
    if (list.problem !== null)
      problems.set(channel.name, `The models of channel "${channel.name}" are unknown: ${list.problem}`);
    return list;
  };
  return {
    problems,
    lists: {
      ofChannel: (channel) => pending.getOrInsertComputed(channel.name, () => ask(channel)),
    },
  };
}

interface Sources {
  readonly catalog: Catalog;
  readonly book: PriceBook;
}

async function listModels(
  group: Group,
  { catalog, book }: Sources,
  { lists, problems }: ChannelLists,
): Promise<PricedModel[]> {
  const now = new Date();
  try {
    const models = await listGroup(group, lists);
    return models.map((model) => {
      const first = group.channels.find(({ name }) => name === model.channels[0]);
      const sources = { book, overrides: catalog.prices, seller: first && sellerOf(first) };
      // An alias costs what the model behind it costs.
      const name = (first && resolveModel(first, model.entry.id)) ?? model.entry.id;
      const free = first?.free === true;
      return { group, model, free, price: free ? null : findPrice(sources, name, now) };
    });
  } catch (error) {
    // The error already describes the problem of each channel.
    for (const { name } of group.channels) problems.delete(name);
    printNote(getErrorMessage(error));
    process.exitCode = 1;
    return [];
  }
}

function describe({ group, model, price, free }: PricedModel) {
  return {
    id: model.entry.id,
    group: group.name,
    platform: group.platform,
    multiplier: group.multiplier,
    channels: model.channels,
    converted: listConverted(group, model),
    price: price?.rates ?? null,
    price_source: free ? "free" : (price?.source ?? null),
  };
}

/** The channels that get the requests of the group's platform converted. */
function listConverted({ platform, convert, channels }: Group, model: ServedModel): string[] {
  const others = channels.filter((channel) => convert && channel.platform !== platform);
  return others.map(({ name }) => name).filter((name) => model.channels.includes(name));
}
