// `gateway keys`.

import { call, type CommandRow, type Parameter } from "../cli/terminal/command.ts";
import { list } from "../cli/terminal/listing.ts";
import { COUNT_LIMITS, LIMIT_CHOICES, USD_LIMITS } from "../config/limit-names.ts";
import { JSON_FORM, LEDGER, YES } from "./flags.ts";

const keyList = () => import("../cli/keys/list.ts");
const keyChange = () => import("../cli/keys/change.ts");

const KEY: Parameter = ["<name>", "the key's name"];
const KEYS: Parameter = ["<names...>", "the keys' names"];
const OWN_SECRET: Parameter = ["--secret <->", "read the secret from stdin"];
const FORCE: Parameter = ["--force", "accept a secret of any form"];
const EXPIRY: Parameter = ["--expires <when>", "30d, 12h, a date, or never"];

const NAMES = [
  ...USD_LIMITS,
  ...COUNT_LIMITS,
  ...Object.entries(LIMIT_CHOICES).map(([name, values]) => `${name} (${values.join(" or ")})`),
];
export const LIMITS: Parameter = ["<limits...>", `NAME=VALUE or NAME=none; names: ${NAMES.join(", ")}`];

const LIST: CommandRow = {
  about: "list the keys, never their secrets",
  flags: [["--group <group>", "only the keys of this group"], JSON_FORM, LEDGER],
  examples: ["gateway keys list  # as a table"],
  run: list(keyList, (found) => found.listKeys, [
    ["NAME", "name"],
    ["GROUP", "group", "text", { spare: 3 }],
    ["PLATFORM", "platform", "text", { spare: 9 }],
    ["STATE", "state", "text", { spare: 4 }],
    ["CREATED", "made", "text", { spare: 10 }],
    ["EXPIRES", "ends", "text", { spare: 8 }],
    ["LAST USED", "used", "text", { spare: 7 }],
    ["TODAY $", "spent_today_usd", "usd", { spare: 2 }],
    ["TOTAL $", "spent_total_usd", "usd", { spare: 5 }],
    ["LIMITS", "uses", "text", { spare: 1 }],
  ]),
};

function switchKeys(word: "disable" | "enable", about: string): CommandRow {
  return {
    about,
    args: [KEYS],
    examples: [`gateway keys ${word} laptop ci  # two at once`],
    run: async (names, flags) => (await keyChange()).setKeysDisabled(names, word === "disable", flags),
  };
}

export const KEYS_ROW: CommandRow = {
  ...LIST,
  about: "create, list and change the keys that clients send",
  examples: [
    "KEY=$(gateway keys add --name ci --group codex)  # for a script",
    "gateway keys list  # what each key has spent",
    "gateway keys rotate laptop  # a new secret for a leaked key",
  ],
  commands: {
    add: {
      about: "create a key and print its secret, once",
      args: [["[name]", "the key's name, as with --name"]],
      flags: [
        ["--name <name>", "the key's name"],
        ["--group <group>", "the group that the key is bound to"],
        OWN_SECRET,
        FORCE,
        ["--limit <limit...>", "a limit, such as usd_per_day=5"],
        EXPIRY,
        JSON_FORM,
      ],
      examples: ["gateway keys add --name guest --limit usd_per_day=5  # at most $5 a day"],
      run: call(keyChange, "addKey"),
    },
    list: LIST,
    show: {
      about: "show one key",
      args: [KEY],
      flags: [JSON_FORM, LEDGER],
      examples: ["gateway keys show laptop  # its group, limits and last use"],
      run: call(keyList, "showKey"),
    },
    remove: {
      about: "remove keys for good",
      args: [KEYS],
      flags: [YES, ["--missing-ok", "a key that is not there is no error"]],
      examples: ["gateway keys remove guest-1 guest-2 --yes  # two at once"],
      run: call(keyChange, "removeKeys"),
    },
    disable: switchKeys("disable", "refuse requests with these keys"),
    enable: switchKeys("enable", "accept requests with these keys again"),
    rotate: {
      about: "give a key a new secret; the old one ends, at once or after --grace",
      args: [KEY],
      flags: [
        OWN_SECRET,
        FORCE,
        EXPIRY,
        ["--grace <duration>", "how long the old secret works, such as 1h or 7d"],
        JSON_FORM,
      ],
      examples: [
        "gateway keys rotate ci --grace 7d  # the old secret works for a week more",
        "gateway keys rotate ci --secret - < secret.txt  # a secret of your own",
      ],
      run: call(keyChange, "rotateKey"),
    },
    move: {
      about: "bind a key to another group; its secret stays",
      args: [KEY],
      flags: [["--group <group>", "the new group"]],
      examples: ["gateway keys move laptop --group claude-max  # at the other multiplier"],
      run: call(keyChange, "moveKey"),
    },
    limit: {
      about: "set or remove limits of a key",
      args: [KEY, LIMITS],
      examples: [
        "gateway keys limit laptop usd_per_day=5 usd_per_month=50  # two limits",
        "gateway keys limit laptop unpriced=allow  # let models without a price in",
      ],
      run: async (name, words, flags) => (await keyChange()).limit("key", name, words, flags),
    },
  },
};
