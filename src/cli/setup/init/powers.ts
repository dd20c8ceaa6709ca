// What a config can do beside sending requests upstream. A stranger's file may do it for the stranger.

import type { Catalog, Limits } from "../../../config/catalog.ts";
import type { Edit } from "../../../config/yaml/edit.ts";
import type { Path } from "../../../config/yaml/source.ts";
import { isLoopback } from "../../../config/proxy.ts";
import { getField } from "../../../lib/json/json.ts";

export interface Power {
  /** As `--accept` names it. */
  readonly name: string;
  /** In the file's own words: references are not expanded, so that no secret is shown. */
  readonly text: string;
  /** They take it out of the config. */
  readonly edits: readonly Edit[];
}

/** `tree`: the file's text as a tree. `ledger`: where the file has the ledger; null: it does not say. */
export function listPowers(tree: unknown, catalog: Catalog, ledger: string | null = null): Power[] {
  const { listen } = catalog;
  return [
    ...describeLogins(catalog),
    ...describeList(tree, ["alerts", "command"], "runs a program for each alert"),
    ...(catalog.otlp === null
      ? []
      : [
          removal("otlp", `sends every line, with names of keys and labels, to ${catalog.otlp.url.href}`, [
            ["otlp"],
          ]),
        ]),
    ...describeList(tree, ["cors_origins"], "lets these pages of a browser use the gateway"),
    ...describeList(tree, ["allowed_hosts"], "answers under these host names"),
    ...(catalog.console === "always"
      ? [removal("console", "serves the console's page to other machines", [["console"]])]
      : []),
    ...(isLoopback(listen.host)
      ? []
      : [removal("listen.host", `listens on ${listen.host}: other machines reach it`, [["listen", "host"]])]),
    ...describeEntries(tree, CA),
    ...describeEntries(tree, OTHER_PATHS),
    ...describeUnpriced(catalog),
    ...describeKeys(catalog),
    ...describeRecorded(catalog),
    ...describePrices(catalog),
    ...PRICING.flatMap((setting) => describeEntries(tree, setting)),
    ...(ledger === null ? [] : [removal("ledger", `writes its ledger to ${ledger}`, [["ledger", "path"]])]),
  ];
}

function removal(name: string, text: string, paths: readonly Path[]): Power {
  return { name, text, edits: paths.map((path) => ({ kind: "remove", path })) };
}

/** Where a tool's own login goes is shown beside the channels' addresses, too. */
function describeLogins({ channels }: Catalog): Power[] {
  const logins = [...channels.values()].filter(({ usesLogin }) => usesLogin);
  if (logins.length === 0) return [];
  const names = logins.map(({ name, baseUrl }) => `${name} to ${baseUrl.href}`);
  const edits = logins.map(({ name }): Edit => {
    return { kind: "set", path: ["channels", name, "disabled"], value: "true" };
  });
  return [{ name: "login", text: `passes on the login of your tool: ${names.join(", ")}`, edits }];
}

function describeList(tree: unknown, path: readonly string[], what: string): Power[] {
  const value = path.reduce<unknown>(getField, tree);
  if (!Array.isArray(value) || value.length === 0) return [];
  return [removal(path.join("."), `${what}: ${value.join(" ")}`, [path])];
}

interface Setting {
  readonly section: "channels" | "groups";
  readonly name: string;
  readonly what: string;
  /** The value with which it changes nothing. */
  readonly plain: string;
}

const CA: Setting = {
  section: "channels",
  name: "ca",
  what: "trusts the certificates of these files",
  plain: "",
};
const OTHER_PATHS: Setting = {
  section: "groups",
  name: "other_paths",
  what: "sends paths upstream that the gateway neither knows nor prices",
  plain: "",
};
const PRICING: readonly Setting[] = [
  {
    section: "channels",
    name: "bill",
    what: "charges what these channels say, whatever that is",
    plain: "book",
  },
  { section: "channels", name: "price_provider", what: "takes the prices of these providers", plain: "" },
  { section: "channels", name: "free", what: "counts these channels as free of charge", plain: "false" },
  { section: "groups", name: "multiplier", what: "multiplies what these groups cost", plain: "1" },
];

function describeEntries(tree: unknown, { section, name: setting, what, plain }: Setting): Power[] {
  const entries = Object.entries(getField(tree, section) ?? {}).flatMap(([name, entry]) => {
    const written = getField(entry, setting);
    const value = Array.isArray(written) ? written.join(" ") : written;
    return typeof value === "string" && value !== plain ? [{ name, value }] : [];
  });
  if (entries.length === 0) return [];
  const texts = entries.map(({ name, value }) =>
    ["true", "reported", "forward"].includes(value) ? name : `${name}: ${value}`,
  );
  const paths = entries.map(({ name }) => [section, name, setting]);
  return [removal(setting, `${what}: ${texts.join(", ")}`, paths)];
}

function describeKeys({ keys }: Catalog): Power[] {
  const all = [...keys.values()];
  if (all.length === 0) return [];
  const names = all.map(({ name }) => name).join(", ");
  const known = removal("keys", `has keys, whose secrets the author of the file may know: ${names}`, [
    ["keys"],
  ]);
  const unlimited = all.filter(({ limits, group }) => !hasUsdLimit(limits) && !hasUsdLimit(group.limits));
  if (unlimited.length === 0) return [known];
  const text = `has keys without a limit in USD: ${unlimited.map(({ name }) => name).join(", ")}`;
  // From the last one on: a removal moves those after it.
  const paths = unlimited.map((key) => ["keys", all.indexOf(key)]).toReversed();
  return [known, removal("unlimited", text, paths)];
}

function describeRecorded({ keys }: Catalog): Power[] {
  const all = [...keys.values()];
  const recorded = all.filter(({ record }) => record !== undefined);
  if (recorded.length === 0) return [];
  const names = recorded.map(({ name }) => name).join(", ");
  const paths = recorded.map((key) => ["keys", all.indexOf(key), "record"]);
  return [removal("record", `writes the requests of these keys and their answers to files: ${names}`, paths)];
}

/** Limits in USD that a model without a price passes. */
function describeUnpriced({ keys, groups }: Catalog): Power[] {
  const owners = [
    ...Array.from(groups.values(), ({ name, limits }) => ({ name, limits, path: ["groups", name] })),
    ...Array.from(keys.values(), ({ name, limits }, index) => ({ name, limits, path: ["keys", index] })),
  ].filter(({ limits }) => limits.allowUnpriced);
  if (owners.length === 0) return [];
  const text = `lets models without a price pass limits in USD: ${owners.map(({ name }) => name).join(", ")}`;
  const paths = owners.map(({ path }) => [...path, "limits", "unpriced"]);
  return [removal("unpriced", text, paths)];
}

function hasUsdLimit(limits: Limits): boolean {
  return [limits.usdPerDay, limits.usdPerMonth, limits.usdTotal].some((limit) => limit !== null);
}

function describePrices({ prices }: Catalog): Power[] {
  if (prices.size === 0) return [];
  const texts = [...prices].map(([model, kinds]) => {
    const amounts = Object.entries(kinds).map(([kind, price]) => `${kind} ${price}`);
    return `${model} (${amounts.join(", ")})`;
  });
  return [removal("prices", `sets prices: ${texts.join(", ")}`, [["prices"]])];
}
