// What a config can do beside sending requests upstream. A stranger's file may do it for the stranger.

import type { Catalog, Limits } from "../../../config/catalog.ts";
import { getField } from "../../../lib/json/json.ts";
import { isLoopbackHost } from "../../../gateway/intake/own-host.ts";

export interface Power {
  /** In the file's own words: references are not expanded, so that no secret is shown. */
  readonly text: string;
  /** The setting without which the config cannot do it. Null: it is part of what makes it a config. */
  readonly setting: readonly string[] | null;
}

const MAX_NAMES_SHOWN = 10;

/** `tree`: the file's text as a tree. */
export function listPowers(tree: unknown, catalog: Catalog): Power[] {
  const { keys, prices, listen } = catalog;
  const all = [...keys.values()];
  const unlimited = all.filter(({ limits, group }) => !hasUsdLimit(limits) && !hasUsdLimit(group.limits));
  const free = [...catalog.channels.values()].filter((channel) => channel.free);
  const believed = [...catalog.channels.values()].filter(({ bill }) => bill === "reported");
  const logins = [...catalog.channels.values()].filter(({ usesLogin }) => usesLogin);
  return [
    describeNames(
      "passes on the login of your tool",
      logins.map(({ name, baseUrl }) => `${name} to ${baseUrl.href}`),
    ),
    describeSetting(tree, ["alerts", "command"], "runs a program for each alert"),
    describeSetting(tree, ["cors_origins"], "lets these pages of a browser use the gateway"),
    describeSetting(tree, ["allowed_hosts"], "answers under these host names"),
    catalog.console === "always"
      ? { text: "serves the console's page to other machines", setting: ["console"] }
      : null,
    isLoopbackHost(listen.host)
      ? null
      : { text: `listens on ${listen.host}: other machines reach it`, setting: ["listen", "host"] },
    describeNames(
      "has keys, whose secrets the author of the file may know",
      all.map(({ name }) => name),
    ),
    describeNames(
      "has keys without a limit in USD",
      unlimited.map(({ name }) => name),
    ),
    describeNames("sets prices", [...prices.keys()]),
    describeNames(
      "counts these channels as free of charge",
      free.map(({ name }) => name),
    ),
    describeNames(
      "charges what these channels say, whatever that is",
      believed.map(({ name }) => name),
    ),
  ].filter((power) => power !== null);
}

function hasUsdLimit(limits: Limits): boolean {
  return [limits.usdPerDay, limits.usdPerMonth, limits.usdTotal].some((limit) => limit !== null);
}

function describeSetting(tree: unknown, setting: readonly string[], what: string): Power | null {
  const value = setting.reduce<unknown>(getField, tree);
  if (!Array.isArray(value) || value.length === 0) return null;
  return { text: `${what}: ${value.join(" ")}`, setting };
}

function describeNames(what: string, names: readonly string[]): Power | null {
  if (names.length === 0) return null;
  const more = names.length > MAX_NAMES_SHOWN ? ` and ${names.length - MAX_NAMES_SHOWN} more` : "";
  return { text: `${what}: ${names.slice(0, MAX_NAMES_SHOWN).join(", ")}${more}`, setting: null };
}
