// `gateway models`: the models of selectable groups.

import { messageOf } from "../../lib/errors.ts";
import { findPrice, loadBook, type PriceBook, sellerOf } from "../../billing/prices.ts";
import type { Catalog, Group } from "../../config/catalog.ts";
import { loadWithCredentials } from "../../config/file/load.ts";
import { findConfig } from "../../config/file/find.ts";
import { resolveModel } from "../../gateway/intake/match.ts";
import { withoutDisabled } from "../../gateway/channels/channels.ts";
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

export async function showModels(flags: ModelsFlags) {
  const { catalog, path } = await loadWithCredentials(findConfig(flags.config, process.env), process.env);
  const book = loadBook(path);
  const groups = chooseGroups(flags, catalog).map((group) => withoutDisabled(group, catalog));
  if (groups.length === 0) printNote(explainNoGroups(catalog));
  const client = createClient();
  const lists = new ModelLists(client);
  const problems = new Map<string, string>();
  const ofChannel: ModelLists["ofChannel"] = async (channel) => {
    const list = await lists.ofChannel(channel);
    if (list.problem !== null)
      problems.set(channel.name, `The models of channel "${channel.name}" are unknown: ${list.problem}`);
    return list;
  };
  const listed = await Promise.all(
    groups.map(async (group) => {
      try {
        const models = await listGroup(group, { ofChannel });
        return models.map((model) => describe(group, model, catalog, book));
      } catch (error) {
        for (const { name } of group.channels) problems.delete(name);
        printNote(messageOf(error));
        process.exitCode = 1;
        return [];
      }
    }),
  );
  client.close();
  for (const problem of problems.values()) printNote(problem);
  const notes = [
    "Prices are official, in USD per million tokens. A charge is the price times the multiplier.",
  ];
  return { rows: listed.flat(), notes };
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

function describe(group: Group, { entry, channels }: ServedModel, catalog: Catalog, book: PriceBook) {
  const first = group.channels.find(({ name }) => name === channels[0]);
  const sources = {
    book,
    overrides: catalog.prices,
    seller: first && sellerOf(first),
  };
  // An alias costs what its model costs.
  const name = (first && resolveModel(first, entry.id)) ?? entry.id;
  const price = first?.free === true ? null : findPrice(sources, name, new Date());
  const others = group.channels.filter(({ platform }) => group.convert && platform !== group.platform);
  return {
    id: entry.id,
    group: group.name,
    platform: group.platform,
    multiplier: group.multiplier,
    channels,
    converted: others.map((channel) => channel.name).filter((each) => channels.includes(each)),
    price: price?.rates ?? null,
    price_source: first?.free === true ? "free" : (price?.source ?? null),
  };
}
