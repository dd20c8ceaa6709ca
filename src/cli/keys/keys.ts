// `gateway keys …`: the flags. The actions are in add, list, change and import,
// which load only when they run.

import { Command } from "commander";
import { addExamples } from "../terminal/help-text.ts";
import { COUNT_LIMITS, LIMIT_CHOICES, USD_LIMITS } from "../../config/limit-names.ts";
import type { ConfigFlags } from "../access/config.ts";
import type { AddFlags } from "./add.ts";
import type { ChangeFlags, MoveFlags, RemoveFlags, RotateFlags } from "./change.ts";
import type { ImportFlags } from "./import.ts";
import type { ListFlags } from "./list.ts";

const CONFIG = ["--config <file>", "the config file"] as const;
const JSON_FORM = ["--json", "one JSON document on stdout"] as const;
const OWN_SECRET = ["--secret <->", "read the secret from stdin instead of generating one"] as const;
const FORCE = ["--force", "accept a secret of any form, for keys of an old gateway"] as const;
const EXPIRY = ["--expires <when>", "30d, 12h, a date, or never"] as const;

const LIMITS = [
  ...USD_LIMITS,
  ...COUNT_LIMITS,
  ...Object.entries(LIMIT_CHOICES).map(([name, values]) => `${name} (${values.join(" or ")})`),
];
/** The words of `keys limit` and `groups limit`, for their help. */
export const LIMIT_WORDS = `NAME=VALUE or NAME=none; names: ${LIMITS.join(", ")}`;

export function keysCommand(): Command {
  const command = new Command("keys")
    .description("create, list and change the keys that clients send")
    .addCommand(addCommand())
    .addCommand(listCommand())
    .addCommand(showCommand())
    .addCommand(removeCommand())
    .addCommand(switchCommand("disable", "refuse requests with these keys", true))
    .addCommand(switchCommand("enable", "accept requests with these keys again", false))
    .addCommand(rotateCommand())
    .addCommand(moveCommand())
    .addCommand(limitCommand())
    .addCommand(importCommand());
  return addExamples(command, [
    ["KEY=$(gateway keys add --name ci --group codex)", "for a script: stdout is the secret alone"],
    ["gateway keys list", "all keys, and what each has spent"],
    ["gateway keys rotate laptop", "a new secret for a leaked key"],
  ]);
}

function addCommand(): Command {
  const command = new Command("add")
    .description("create a key and print its secret, once")
    .option("--name <name>", "the key's name")
    .option("--group <group>", "the group that the key is bound to")
    .option(...OWN_SECRET)
    .option(...FORCE)
    .option("--limit <limit...>", "a limit such as usd_per_day=5; repeat it for more")
    .option("--count <n>", "create this many keys, named NAME-1, NAME-2, …")
    .option(...EXPIRY)
    .option(...JSON_FORM)
    .option(...CONFIG)
    .action(async (flags: AddFlags) => {
      const { addKeys } = await import("./add.ts");
      await addKeys(flags);
    });
  return addExamples(command, [
    ["gateway keys add", "asks for name and group"],
    ["gateway keys add --name guest --group claude --limit usd_per_day=5", "at most $5 a day"],
    ["KEY=$(gateway keys add --name ci --group codex)", "for a script: stdout is the secret alone"],
    [
      "gateway keys add --name guest --group claude --count 5 --expires 30d --json",
      "five keys that expire in a month",
    ],
  ]);
}

function listCommand(): Command {
  const command = new Command("list")
    .description("list the keys, never their secrets")
    .option(...JSON_FORM)
    .option(...CONFIG)
    .action(async (flags: ListFlags) => {
      const { listKeys } = await import("./list.ts");
      await listKeys(flags);
    });
  return addExamples(command, [
    ["gateway keys list", "as a table"],
    ["gateway keys list --json | jq -r '.[].name'", "the names alone"],
  ]);
}

function showCommand(): Command {
  const command = new Command("show")
    .description("show one key")
    .argument("<name>", "the key's name")
    .option(...JSON_FORM)
    .option(...CONFIG)
    .action(async (name: string, flags: ListFlags) => {
      const { showKey } = await import("./list.ts");
      await showKey(name, flags);
    });
  return addExamples(command, [["gateway keys show laptop", "its group, limits and last use"]]);
}

function removeCommand(): Command {
  const command = new Command("remove")
    .description("remove keys for good")
    .argument("<names...>", "the keys' names")
    .option("--yes", "remove without a prompt")
    .option(...CONFIG)
    .action(async (names: string[], flags: RemoveFlags) => {
      const { removeKeys } = await import("./change.ts");
      await removeKeys(names, flags);
    });
  return addExamples(command, [
    ["gateway keys remove guest-1 guest-2 --yes", "two at once, without a prompt"],
  ]);
}

function switchCommand(name: string, description: string, disabled: boolean): Command {
  const command = new Command(name)
    .description(description)
    .argument("<names...>", "the keys' names")
    .option(...CONFIG)
    .action(async (names: string[], flags: ChangeFlags) => {
      const { setKeysDisabled: switchKeys } = await import("./change.ts");
      await switchKeys(names, disabled, flags);
    });
  return addExamples(command, [
    [`gateway keys ${name} laptop ci`, "two at once; a running gateway applies it within a second"],
  ]);
}

function rotateCommand(): Command {
  const command = new Command("rotate")
    .description("give a key a new secret; the old one stops working")
    .argument("<name>", "the key's name")
    .option(...OWN_SECRET)
    .option(...FORCE)
    .option(...EXPIRY)
    .option(...JSON_FORM)
    .option(...CONFIG)
    .action(async (name: string, flags: RotateFlags) => {
      const { rotateKey } = await import("./change.ts");
      await rotateKey(name, flags);
    });
  return addExamples(command, [
    ["gateway keys rotate laptop", "print the new secret, once"],
    [
      "gateway keys rotate ci --secret - --expires 90d < secret.txt",
      "a secret of your own, for three months",
    ],
  ]);
}

function moveCommand(): Command {
  const command = new Command("move")
    .description("bind a key to another group; its secret stays")
    .argument("<name>", "the key's name")
    .option("--group <group>", "the new group")
    .option(...CONFIG)
    .action(async (name: string, flags: MoveFlags) => {
      const { moveKey } = await import("./change.ts");
      await moveKey(name, flags);
    });
  return addExamples(command, [
    ["gateway keys move laptop --group claude-max", "from now on the other group's multiplier applies"],
  ]);
}

function limitCommand(): Command {
  const command = new Command("limit")
    .description("set or remove limits of a key")
    .argument("<name>", "the key's name")
    .argument("<limits...>", LIMIT_WORDS)
    .option(...CONFIG)
    .action(async (name: string, limits: string[], flags: ConfigFlags) => {
      const { limitKeys } = await import("./limits.ts");
      await limitKeys(name, limits, flags);
    });
  return addExamples(command, [
    ["gateway keys limit laptop usd_per_day=5 usd_per_month=50", "at most $5 a day and $50 a month"],
    ["gateway keys limit laptop usd_per_day=none", "no daily limit"],
    ["gateway keys limit laptop strict=true", "let a request in only if the most that it can cost fits"],
    ["gateway keys limit laptop unpriced=allow", "let models without a price in, which no limit counts"],
  ]);
}

function importCommand(): Command {
  const command = new Command("import")
    .description("add existing keys, all or none: NAME=secret lines, or the JSON of `keys add --json`")
    .argument("[file]", "the file; stdin without it", "-")
    .option("--group <group>", "the group of keys from NAME=secret lines")
    .option(...FORCE)
    .option(...CONFIG)
    .action(async (file: string, flags: ImportFlags) => {
      const { importKeys } = await import("./import.ts");
      await importKeys(file, flags);
    });
  return addExamples(command, [
    ["gateway keys import keys.env --group claude", "lines such as LAPTOP=sk-…"],
    [
      "ssh old-machine gateway keys add --name new --group claude --json | gateway keys import",
      "the JSON of `keys add --json`",
    ],
  ]);
}
