// What `gateway models` does: asks the channels of a group, or of all that are
// open, for their models now, and says what each costs.

import { findPrice, loadPriceBook, type Price, type PriceBook, sellerOf } from "../../billing/prices.ts";
import type { Catalog, Group } from "../../config/catalog.ts";
import { loadConfig } from "../../config/file.ts";
import { findConfig } from "../../config/find.ts";
import { resolveModel } from "../../gateway/intake/match.ts";
import {
  createModelLists,
  listGroup,
  type ModelLists,
  type ServedModel,
} from "../../gateway/channels/model-list.ts";
import { createClient } from "../../lib/http1/client/client.ts";
import { describeNone, listSelectable } from "../keys/group-choice.ts";
import { type ConfigFlags, describe, findGroup, findKey } from "../config-access.ts";
import { printJson, printTable, refuseUsage, tell } from "../terminal.ts";

export interface ModelsFlags extends ConfigFlags {
  readonly group?: string;
  readonly keyName?: string;
  readonly json?: true;
}

interface Listed {
  readonly group: Group;
  readonly model: ServedModel;
  readonly price: Price | null;
}

export async function showModels(flags: ModelsFlags): Promise<void> {
  const { catalog, path } = loadConfig(findConfig(flags.config, process.env), process.env);
  const book = loadPriceBook(path);
  const groups = chooseGroups(flags, catalog);
  if (groups.length === 0) tell(describeNone(catalog));
  const client = createClient();
  const asked = askOnce(createModelLists(client));
  const listed: Listed[] = [];
  for (const group of groups) listed.push(...(await listModels(group, { catalog, book }, asked)));
  client.close();
  for (const problem of asked.problems.values()) tell(problem);
  if (flags.json === true) printJson(listed.map(describeForScripts));
  else if (listed.length > 0) printModels(listed);
}

function chooseGroups({ group, keyName }: ModelsFlags, catalog: Catalog): Group[] {
  if (group !== undefined && keyName !== undefined)
    return refuseUsage("--group and --key-name exclude each other.");
  if (group !== undefined) return [findGroup(catalog, group)];
  if (keyName !== undefined) return [findKey(catalog, keyName).key.group];
  return listSelectable(catalog, new Date());
}

interface Asked {
  readonly lists: ModelLists;
  /** By the channel's name. */
  readonly problems: Map<string, string>;
}

/** Groups share channels: each channel is asked once, and what is wrong with it is told once. */
function askOnce(lists: ModelLists): Asked {
  const problems = new Map<string, string>();
  const asked = new Map<string, ReturnType<ModelLists["ofChannel"]>>();
  const ask: ModelLists["ofChannel"] = async (channel, vendor) => {
    const told = await lists.ofChannel(channel, vendor);
    if (told.problem !== null)
      problems.set(channel.name, `The channel "${channel.name}" could not be asked: ${told.problem}`);
    return told;
  };
  return {
    problems,
    lists: {
      ofChannel: (channel, vendor) => {
        const told = asked.get(channel.name) ?? ask(channel, vendor);
        asked.set(channel.name, told);
        return told;
      },
    },
  };
}

interface Known {
  readonly catalog: Catalog;
  readonly book: PriceBook;
}

async function listModels(group: Group, known: Known, { lists, problems }: Asked): Promise<Listed[]> {
  const { catalog, book } = known;
  const now = new Date();
  try {
    const models = await listGroup(group, { catalog, lists });
    return models.map((model) => {
      const first = group.channels.find(({ name }) => name === model.channels[0]);
      const sources = { book, overrides: catalog.prices, seller: first && sellerOf(first) };
      // An alias costs what the model behind it costs.
      const name = (first && resolveModel(first, model.entry.id)) ?? model.entry.id;
      return { group, model, price: findPrice(sources, name, now) };
    });
  } catch (error) {
    // It says what is wrong with each of them.
    for (const { name } of group.channels) problems.delete(name);
    tell(describe(error));
    process.exitCode = 1;
    return [];
  }
}

function describeForScripts({ group, model, price }: Listed): Record<string, unknown> {
  return {
    id: model.entry.id,
    group: group.name,
    platform: group.platform,
    multiplier: group.multiplier,
    channels: model.channels,
    price: price?.rates ?? null,
    price_source: price?.source ?? null,
  };
}

function printModels(listed: readonly Listed[]): void {
  const prices = ["input", "output", "cache_read", "cache_write_5m"];
  printTable(
    [
      { title: "MODEL", least: 26 },
      { title: "GROUP" },
      { title: "PLATFORM", spare: 5 },
      { title: "MULTIPLIER", align: "right", spare: 3 },
      { title: "INPUT $", align: "right" },
      { title: "OUTPUT $", align: "right" },
      { title: "CACHE READ $", align: "right", spare: 1 },
      { title: "CACHE WRITE $", align: "right", spare: 2 },
      { title: "CHANNELS", spare: 4 },
    ],
    listed.map(({ group, model, price }) => [
      model.entry.id,
      group.name,
      group.platform,
      `×${group.multiplier}`,
      ...prices.map((kind) => (price === null ? "?" : (price.rates[kind] ?? ""))),
      model.channels.join(", "),
    ]),
  );
  tell("Prices are official, per million tokens; a charge is that times the multiplier.");
}
