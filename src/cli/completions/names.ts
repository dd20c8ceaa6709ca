// The names that completions offer, as the config file has them now. Nothing is asked over the network, and a
// broken config has none: nobody wants an error at the press of a tab.

import { listBookedModels } from "../../billing/prices.ts";
import type { Catalog } from "../../config/catalog.ts";
import { PLATFORM_ROWS } from "../../dialects/platforms.ts";
import { matchesGlob } from "../../lib/glob.ts";
import type { Named, Suggestion } from "./complete.ts";
import { listSelectable } from "../keys/group-choice.ts";
import { describeGroup, openConfig } from "../config-access.ts";
import { TOOLS } from "../tools/tools.ts";

export function readNames(what: Named, config: string | undefined): Suggestion[] {
  if (what === "tool") return [...TOOLS.values()].map(({ name, title }) => ({ value: name, about: title }));
  try {
    const { catalog } = openConfig(config === undefined ? {} : { config });
    return listNames(what, catalog);
  } catch {
    return [];
  }
}

function listNames(what: Exclude<Named, "tool">, catalog: Catalog): Suggestion[] {
  switch (what) {
    case "key":
      return [...catalog.keys.values()].map(({ name, group }) => ({
        value: name,
        about: `${group.name}, ${group.platform}`,
      }));
    case "group":
      return listSelectable(catalog, new Date()).map((group) => ({
        value: group.name,
        about: describeGroup(group),
      }));
    case "channel":
      return [...catalog.channels.values()].map(({ name, platform, baseUrl }) => ({
        value: name,
        about: `${platform}, ${baseUrl.host}`,
      }));
    case "plan":
      return [...catalog.plans.values()].map(({ name, groups }) => ({
        value: name,
        about: groups.join(", "),
      }));
    case "model":
      return listModels(catalog).map((value) => ({ value, about: "" }));
  }
}

/** What the config names, and of the models that the price book knows those that a channel would take. */
function listModels({ channels, prices }: Catalog): string[] {
  const booked = listBookedModels();
  const names = [...channels.values()].flatMap(({ platform, models, aliases }) => [
    ...aliases.keys(),
    ...(models ?? []).filter((model) => !model.includes("*")),
    ...booked
      .filter(({ provider }) => PLATFORM_ROWS[platform].makers.some(({ name }) => name === provider))
      .map(({ id }) => id)
      .filter((id) => models?.some((glob) => matchesGlob(glob, id)) ?? true),
  ]);
  return [...new Set([...names, ...prices.keys()])];
}
