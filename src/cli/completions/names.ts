// The names that completions offer, from the config file and without the network. A broken config offers none: the
// tab key must not print an error.

import { listBookedModels, loadPriceBook, sellerOf } from "../../billing/prices.ts";
import type { Catalog } from "../../config/catalog.ts";
import type { LoadedConfig } from "../../config/file/load.ts";
import { escapeUnprintable, isPrintable } from "../../lib/text/printable.ts";
import { matchesGlob } from "../../lib/text/glob.ts";
import { listSelectableGroups } from "../../config/changes/keys.ts";
import { describeGroup, openConfig } from "../access/config.ts";
import { TOOLS } from "../tools/programs/tools.ts";

export const NAME_KINDS = ["key", "group", "channel", "plan", "model", "tool"] as const;
type NameKind = (typeof NAME_KINDS)[number];

export interface Suggestion {
  readonly value: string;
  /** A few words, or empty. */
  readonly description: string;
}

export function readNames(what: NameKind, config: string | undefined): Suggestion[] {
  if (what === "tool")
    return [...TOOLS.values()]
      .filter(({ isForEnv }) => isForEnv !== true)
      .map(({ name, title }) => ({ value: name, description: title }));
  try {
    const names = listNames(what, openConfig(config === undefined ? {} : { config }));
    // Each suggestion is a line. Such a name cannot be typed anyway.
    return names
      .filter(({ value }) => isPrintable(value))
      .map(({ value, description }) => ({ value, description: escapeUnprintable(description) }));
  } catch {
    return [];
  }
}

function listNames(what: Exclude<NameKind, "tool">, { catalog, path }: LoadedConfig): Suggestion[] {
  switch (what) {
    case "key":
      return [...catalog.keys.values()].map(({ name, group }) => ({
        value: name,
        description: `${group.name}, ${group.platform}`,
      }));
    case "group":
      return listSelectableGroups(catalog, new Date()).map((group) => ({
        value: group.name,
        description: describeGroup(group),
      }));
    case "channel":
      return [...catalog.channels.values()].map(({ name, platform, baseUrl }) => ({
        value: name,
        description: `${platform}, ${baseUrl.host}`,
      }));
    case "plan":
      return [...catalog.plans.values()].map(({ name, groups }) => ({
        value: name,
        description: groups.join(", "),
      }));
    case "model":
      return listModels(catalog, path).map((value) => ({ value, description: "" }));
  }
}

/** The models that the config names, and those of the price book that a channel accepts. */
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
