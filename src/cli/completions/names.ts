// The names that completions offer, as the config file has them now. Nothing is asked over the network, and a
// broken config has none: nobody wants an error at the press of a tab.

import { listBookedModels, loadPriceBook, sellerOf } from "../../billing/prices.ts";
import type { Catalog } from "../../config/catalog.ts";
import type { Loaded } from "../../config/file.ts";
import { matchesGlob } from "../../lib/glob.ts";
import type { Named, Suggestion } from "./complete.ts";
import { listSelectable } from "../keys/group-choice.ts";
import { describeGroup, openConfig } from "../config-access.ts";
import { TOOLS } from "../tools/tools.ts";

export function readNames(what: Named, config: string | undefined): Suggestion[] {
  if (what === "tool") return [...TOOLS.values()].map(({ name, title }) => ({ value: name, about: title }));
  try {
    return listNames(what, openConfig(config === undefined ? {} : { config }));
  } catch {
    return [];
  }
}

function listNames(what: Exclude<Named, "tool">, { catalog, path }: Loaded): Suggestion[] {
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
      return listModels(catalog, path).map((value) => ({ value, about: "" }));
  }
}

/** What the config names, and of the models that the price book knows those that a channel would take. */
function listModels({ channels, prices }: Catalog, path: string): string[] {
  const book = loadPriceBook(path);
  const names = [...channels.values()].flatMap((channel) => {
    const { models, aliases } = channel;
    const { provider, makers } = sellerOf(channel);
    return [
      ...aliases.keys(),
      ...(models ?? []).filter((model) => !model.includes("*")),
      ...listBookedModels(book, provider === null ? makers : [provider])
        .map(({ id }) => id)
        .filter((id) => models?.some((glob) => matchesGlob(glob, id)) ?? true),
    ];
  });
  return [...new Set([...names, ...prices.keys()])];
}
