// `gateway keys`, `groups`, `plans`, `channels` and `prices`.

import type { ChannelAction } from "../cli/channels/list.ts";
import { call, CONFIG, type CommandRow, type CommandTable, type Parameter } from "../cli/terminal/command.ts";
import { list } from "../cli/terminal/listing.ts";
import { COUNT_LIMITS, UNPRICED, USD_LIMITS } from "../config/limit-names.ts";
import { JSON_FORM, LEDGER, YES } from "./flags.ts";

const keyList = () => import("../cli/keys/list.ts");
const keyChange = () => import("../cli/keys/change.ts");

const KEY: Parameter = ["<name>", "the key's name"];
const KEYS: Parameter = ["<names...>", "the keys' names"];
const OWN_SECRET: Parameter = ["--secret <->", "read the secret from stdin"];
const FORCE: Parameter = ["--force", "accept a secret of any form"];
const EXPIRY: Parameter = ["--expires <when>", "30d, 12h, a date, or never"];

const NAMES = [...USD_LIMITS, ...COUNT_LIMITS, `unpriced (${UNPRICED.join(" or ")})`];
const LIMITS: Parameter = ["<limits...>", `NAME=VALUE or NAME=none; names: ${NAMES.join(", ")}`];

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

const KEYS_ROW: CommandRow = {
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
      flags: [YES, ["--missing-ok", "do not fail if a key is not there"]],
      examples: ["gateway keys remove guest-1 guest-2 --yes  # two at once"],
      run: call(keyChange, "removeKeys"),
    },
    disable: switchKeys("disable", "refuse requests with these keys"),
    enable: switchKeys("enable", "accept requests with these keys again"),
    rotate: {
      about: "give a key a new secret; the old one is refused, at once or after --grace",
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
      about: "bind a key to another group, with the same secret",
      args: [KEY],
      flags: [["--group <group>", "the new group"]],
      examples: ["gateway keys move laptop --group claude-max  # at that group's multiplier"],
      run: call(keyChange, "moveKey"),
    },
    limit: {
      about: "set or remove limits of a key",
      args: [KEY, LIMITS],
      examples: [
        "gateway keys limit laptop usd_per_day=5 usd_per_month=50  # two limits",
        "gateway keys limit laptop unpriced=allow  # accept models without a price",
      ],
      run: async (name, words, flags) => (await keyChange()).limit("key", name, words, flags),
    },
  },
};

const groups = () => import("../cli/catalog/groups.ts");
const channels = () => import("../cli/channels/list.ts");
const channelSetUp = () => import("../cli/channels/change.ts");
const prices = () => import("../cli/money/prices.ts");

const GROUP: Parameter = ["<name>", "the group's name"];
const PLAN: Parameter = ["<name>", "the plan's name"];
const CHANNEL: Parameter = ["<name>", "the channel"];
const CREDENTIAL: readonly Parameter[] = [
  ["--credential <->", "read the credential from stdin"],
  ["--no-check", "do not check the credential"],
];
const MODEL: Parameter = ["<model>", "as a client or an upstream names it"];
const FROM: Parameter = [
  "--from <place>",
  "a file or an address (default: the newest release of the price package)",
];

const LIST_GROUPS: CommandRow = {
  about: "list the groups that a key can be bound to",
  flags: [["--all", "also exclusive groups without an active plan"], JSON_FORM],
  examples: ["gateway groups list  # with platform, multiplier and channels"],
  run: list(groups, (found) => found.listGroups, [
    ["NAME", "name"],
    ["PLATFORM", "platform", "text", { spare: 1 }],
    ["MULTIPLIER", ({ multiplier }) => `×${multiplier}`, "text", { align: "right" }],
    ["STATE", (group) => (!group.selectable ? "plan inactive" : group.exclusive ? "exclusive" : "open")],
    ["CHANNELS", "channels", "text", { spare: 3 }],
    ["DESCRIPTION", "description", "text", { spare: 2 }],
  ]),
};

const LIST_PLANS: CommandRow = {
  about: "list the plans and their groups",
  flags: [JSON_FORM],
  examples: ["gateway plans list  # which plans are active"],
  run: list(groups, (found) => found.listPlans, [
    ["NAME", "name"],
    ["STATE", (plan) => (plan.in_force ? "active" : plan.active ? "ended" : "inactive")],
    ["UNTIL", "until", "day"],
    ["GROUPS", "groups"],
  ]),
};

function actOn(action: ChannelAction, about: string): CommandRow {
  return {
    about,
    args: [CHANNEL],
    flags: [["--json", "the channel's new state, as JSON on stdout"]],
    examples: [`gateway channels ${action} anthropic-main  # prints the new state`],
    run: async (name, flags) => (await channels()).actOnChannel(action, name, flags),
  };
}

export const MANAGE: CommandTable = {
  keys: KEYS_ROW,
  groups: {
    ...LIST_GROUPS,
    about: "show and change the groups that keys are bound to",
    commands: {
      list: LIST_GROUPS,
      add: {
        about: "add a group of channels that keys can be bound to",
        args: [GROUP],
        flags: [
          ["--channel <name...>", "its channels, all of one platform"],
          ["--multiplier <decimal>", "what official amounts are multiplied by (default: 1)"],
          ["--description <text>", "what the dropdown of groups shows"],
          ["--exclusive", "open it only while a plan that includes it is active"],
          ["--convert <platform>", "convert for clients of messages, responses or content"],
        ],
        examples: [
          "gateway groups add cheap --channel anthropic-main --multiplier 0.8  # at another rate",
          "gateway groups add claude-gpt --channel openai-main --convert messages  # Claude Code on GPT",
        ],
        run: call(groups, "addGroup"),
      },
      set: {
        about: "change settings of a group in the config file",
        args: [
          GROUP,
          ["<settings...>", "NAME=VALUE or NAME=none; names as in the config, such as multiplier"],
        ],
        examples: ["gateway groups set claude multiplier=0.9 exclusive=true  # two settings at once"],
        run: call(groups, "setGroup"),
      },
      remove: {
        about: "remove a group to which no key is bound",
        args: [GROUP],
        flags: [YES],
        examples: ["gateway groups remove cheap --yes  # without a prompt"],
        run: call(groups, "removeGroup"),
      },
      limit: {
        about: "set or remove limits of a group, for all of its keys together",
        args: [GROUP, LIMITS],
        examples: ["gateway groups limit claude usd_per_month=200  # at most $200 a month"],
        run: async (name, words, flags) =>
          (await import("../cli/keys/change.ts")).limit("group", name, words, flags),
      },
    },
  },
  plans: {
    ...LIST_PLANS,
    about: "manage subscription plans, which unlock exclusive groups",
    examples: [
      "gateway plans list  # which plans are active",
      "gateway plans activate max --until 2027-01-31  # until the end of January",
    ],
    commands: {
      list: LIST_PLANS,
      add: {
        about: "add a plan that unlocks exclusive groups while it is active",
        args: [PLAN],
        flags: [
          ["--group <name...>", "the groups that it includes"],
          ["--active", "the plan has been bought"],
        ],
        examples: ["gateway plans add max --group claude-max --active  # a plan that was bought"],
        run: call(groups, "addPlan"),
      },
      activate: {
        about: "mark a plan as bought: keys can use its exclusive groups",
        args: [PLAN],
        flags: [["--until <when>", "when the plan ends: a date, 30d, or never"]],
        examples: ["gateway plans activate max  # from now on"],
        run: call(groups, "activatePlan"),
      },
      deactivate: {
        about: "end a plan: the gateway refuses keys of its exclusive groups",
        args: [PLAN],
        examples: ["gateway plans deactivate max  # until it is active again"],
        run: call(groups, "deactivatePlan"),
      },
      remove: {
        about: "remove a plan",
        args: [PLAN],
        flags: [YES],
        examples: ["gateway plans remove max --yes  # without a prompt"],
        run: call(groups, "removePlan"),
      },
    },
  },
  channels: {
    about: "show each channel's state; exit status 1 if a group has none available",
    flags: [["--watch", "keep showing it until Ctrl-C"], JSON_FORM, LEDGER],
    examples: [
      "gateway channels  # all channels",
      "gateway channels disable anthropic-main  # stop using a channel",
    ],
    run: call(channels, "showChannels"),
    commands: {
      disable: actOn("disable", "send nothing to a channel until it is enabled again"),
      enable: actOn("enable", "use a channel again, and clear its cooldown"),
      probe: actOn("probe", "check a channel now, free of charge"),
      add: {
        about: "add an upstream: a known provider, or a URL",
        args: [
          [
            "<preset|url>",
            "anthropic, openai, google, openrouter, deepseek, groq, mistral, ollama, vllm, …, or a base URL",
          ],
        ],
        flags: [
          ["--name <name>", "the channel's name"],
          ["--platform <platform>", "for a URL: its platform"],
          ["--group <group>", "add it to this group (default: a new group)"],
          ...CREDENTIAL,
          ["--json", "the new channel as JSON on stdout"],
        ],
        examples: [
          "gateway channels add deepseek  # a channel and a group",
          "gateway channels add openai --group codex --credential - < key.txt  # to a group",
        ],
        run: call(channelSetUp, "addChannel"),
      },
      set: {
        about: "change settings of a channel in the config file",
        args: [
          CHANNEL,
          [
            "[settings...]",
            "NAME=VALUE or NAME=none; names as in the config, such as models or headers.NAME",
          ],
        ],
        flags: [...CREDENTIAL],
        examples: [
          "gateway channels set anthropic-main priority=2 timeouts.idle=20m  # two settings",
          "gateway channels set anthropic-main --credential - < key.txt  # a new credential",
        ],
        run: call(channelSetUp, "setChannel"),
      },
      remove: {
        about: "remove a channel from the config file and from its groups",
        args: [CHANNEL],
        flags: [YES],
        examples: ["gateway channels remove old-relay --yes  # without a prompt"],
        run: call(channelSetUp, "removeChannel"),
      },
    },
  },
  prices: {
    about: "show, check and update prices",
    examples: [
      "gateway prices show claude-sonnet-5  # what a model costs",
      "gateway prices check  # has every model a price?",
      "gateway prices update  # take the newest prices",
    ],
    commands: {
      show: {
        about: "show a model's prices at every provider, with their source",
        args: [MODEL],
        flags: [JSON_FORM, CONFIG, ["--provider <name>", "at this provider only"]],
        examples: ["gateway prices show claude-sonnet-5  # wherever it is sold"],
        run: call(prices, "showPrices"),
      },
      check: {
        about: "list the models in use without a price: exit status 1 if there are any",
        flags: [JSON_FORM, CONFIG, LEDGER],
        examples: ["gateway prices check  # in the ledger and the config"],
        run: list(prices, (found) => found.checkPrices, [
          ["MODEL", "model"],
          ["CHANNEL", "channel"],
          ["REQUESTS", "requests", "count"],
        ]),
      },
      set: {
        about: "set a model's prices in the config, which override the book",
        args: [MODEL, ["<prices...>", "KIND=VALUE or KIND=none, in USD per million tokens"]],
        examples: ["gateway prices set my-model input=3 output=15 cache_read=0.3  # a model of your own"],
        run: call(prices, "setPrices"),
      },
      update: {
        about: "show what newer prices would change, ask, and use them",
        flags: [
          JSON_FORM,
          CONFIG,
          FROM,
          ["--dry-run", "show what would change, and write nothing"],
          ["--yes", "do not ask, for scripts"],
          ["--accept <name...>", "accept a doubtful change: PROVIDER/MODEL or PROVIDER"],
          LEDGER,
        ],
        examples: [
          "gateway prices update  # from the newest release",
          "gateway prices update --from data.json  # from another machine",
          "gateway prices update --from package/dist/index.js  # from `npm pack @pydantic/genai-prices`",
        ],
        run: call(() => import("../cli/money/prices-update.ts"), "updatePrices"),
      },
    },
  },
};
