import { describe, expect, test } from "bun:test";
import type { Catalog } from "../../../src/config/catalog.ts";
import { applyEdits } from "../../../src/config/yaml/edit.ts";
import { checkConfigText } from "../../../src/config/file/load.ts";

// Names that every plain object of JavaScript has already. A config may use them, or the error says that it may not:
// nothing vanishes silently.
const NAMES = [
  "constructor",
  "prototype",
  "toString",
  "valueOf",
  "hasOwnProperty",
  "isPrototypeOf",
  "__defineGetter__",
  "__lookupGetter__",
  "__proto__",
];

const CHANNEL = '{ platform: messages, base_url: "https://a.example", credential: x }';

interface Section {
  readonly name: string;
  readonly write: (name: string) => string;
  /** Whether the entry is there, and works. */
  readonly has: (catalog: Catalog, name: string) => boolean;
}

const withGroup = (more: string) =>
  `channels: { a: ${CHANNEL} }\ngroups: { g: { platform: messages, channels: [a] } }\n${more}`;

const SECTIONS: Section[] = [
  {
    name: "channel",
    write: (name) =>
      `channels: { ${name}: ${CHANNEL} }\ngroups: { g: { platform: messages, channels: [${name}] } }\n`,
    has: ({ channels, groups }, name) =>
      channels.get(name)?.name === name && groups.get("g")?.channels[0]?.name === name,
  },
  {
    name: "group",
    write: (name) =>
      `channels: { a: ${CHANNEL} }\ngroups: { ${name}: { platform: messages, channels: [a] } }\n` +
      `keys: [{ name: k, group: ${name}, secret: x }]\nplans: { p: { groups: [${name}] } }\n`,
    has: ({ groups, keys }, name) => groups.get(name)?.name === name && keys.get("k")?.group.name === name,
  },
  {
    name: "plan",
    write: (name) => withGroup(`plans: { ${name}: { groups: [g] } }\n`),
    has: ({ plans, groups }, name) =>
      plans.get(name)?.name === name && groups.get("g")?.plans[0]?.name === name,
  },
  {
    name: "key",
    write: (name) => withGroup(`keys: [{ name: ${name}, group: g, secret: x }]\n`),
    has: ({ keys }, name) => keys.get(name)?.name === name,
  },
  {
    name: "price",
    write: (name) => withGroup(`prices: { ${name}: { input: "3" } }\n`),
    has: ({ prices }, name) => prices.get(name)?.["input"] === "3",
  },
  { name: "price kind", write: (name) => withGroup(`prices: { m: { ${name}: "3" } }\n`), has: () => false },
  {
    name: "alias",
    write: (name) => `channels: { a: ${CHANNEL.replace(" }", `, aliases: { ${name}: other } }`)} }\n`,
    has: ({ channels }, name) => channels.get("a")?.aliases.get(name) === "other",
  },
  {
    name: "alias's target",
    write: (name) => `channels: { a: ${CHANNEL.replace(" }", `, aliases: { fast: ${name} } }`)} }\n`,
    has: ({ channels }, name) => channels.get("a")?.aliases.get("fast") === name,
  },
  {
    name: "header",
    write: (name) => `channels: { a: ${CHANNEL.replace(" }", `, headers: { ${name}: v } }`)} }\n`,
    has: ({ channels }, name) =>
      channels.get("a")?.headers.some(([header, value]) => header === name.toLowerCase() && value === "v") ===
      true,
  },
  {
    name: "model in an allow-list",
    write: (name) => `channels: { a: ${CHANNEL.replace(" }", `, models: [${name}] }`)} }\n`,
    has: ({ channels }, name) => channels.get("a")?.models?.includes(name) === true,
  },
  { name: "setting", write: (name) => withGroup(`${name}: 1\n`), has: () => false },
  { name: "nested setting", write: (name) => withGroup(`listen: { ${name}: 1 }\n`), has: () => false },
  {
    name: "limit",
    write: (name) => withGroup(`keys: [{ name: k, group: g, secret: x, limits: { ${name}: 1 } }]\n`),
    has: () => false,
  },
  {
    name: "duration's unit",
    write: (name) => withGroup(`on_disconnect: { drain: 5${name} }\n`),
    has: () => false,
  },
  { name: "size's unit", write: (name) => withGroup(`max_body: 5${name}\n`), has: () => false },
];

describe.each(SECTIONS.map((section) => [section.name, section] as const))("as a %s", (_, section) => {
  test.each(NAMES)("%s works or is an error that names its place", (name) => {
    let catalog: Catalog;
    try {
      ({ catalog } = checkConfigText(section.write(name), "/etc/g.yaml", {}));
    } catch (error) {
      expect(String(error)).toMatch(/\/etc\/g\.yaml:\d+:\d+: /);
      return;
    }
    expect(section.has(catalog, name)).toBe(true);
  });
});

test.each(NAMES)("a reference to a group named %s that does not exist is an error", (name) => {
  const text = withGroup(
    `keys: [{ name: k, group: ${name}, secret: x }]\nplans: { p: { groups: [${name}] } }\n`,
  );
  expect(() => checkConfigText(text, "/etc/g.yaml", {})).toThrow("there is no group");
});

test.each(NAMES)("an edit below a plan named %s changes that plan", (name) => {
  const text = `plans:\n  ${name}: { groups: [g] }\n`;
  const path = ["plans", name, "active"];
  expect(applyEdits(text, [{ kind: "set", path, value: "true" }])).toBe(
    `plans:\n  ${name}: { groups: [g], active: true }\n`,
  );
});
