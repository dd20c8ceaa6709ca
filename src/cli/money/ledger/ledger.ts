// The flags of `gateway ledger …`. ledger-run.ts and reprice.ts do the work, and are loaded only when needed.

import { Command } from "commander";
import { addExamples } from "../../terminal/help-text.ts";
import type { RepriceFlags } from "./reprice.ts";
import type { ShowFlags, TailFlags, VerifyFlags } from "./ledger-run.ts";

export function ledgerCommand(): Command {
  const command = new Command("ledger")
    .description("verify, explain and follow the ledger of charges")
    .addCommand(verifyCommand())
    .addCommand(anchorCommand())
    .addCommand(showCommand())
    .addCommand(tailCommand())
    .addCommand(repriceCommand());
  return addExamples(command, [
    ["gateway ledger verify", "check every amount, and that no line is missing"],
    ["gateway ledger show req_01k…", "explain one charge"],
    ["gateway ledger tail", "follow new lines"],
  ]);
}

function openCommand(name: string): Command {
  return new Command(name)
    .option("--ledger <file>", "read this ledger instead of the config's")
    .option("--config <file>", "the config file")
    .option("--json", "JSON on stdout");
}

function verifyCommand(): Command {
  const command = openCommand("verify")
    .description("recompute every amount and check the chain of hashes through all files")
    .option("--partial", "accept that the oldest files are missing")
    .option("--anchor <anchor>", "check that the ledger still has the lines of an anchor")
    .action(async (flags: VerifyFlags) => {
      const { verify } = await import("./ledger-run.ts");
      verify(flags);
    });
  return addExamples(command, [
    ["gateway ledger verify", "exit status 1 if an amount or a link of the chain is wrong"],
    ["gateway ledger verify --ledger backup/ledger.jsonl", "check a copy"],
  ]);
}

function anchorCommand(): Command {
  const command = openCommand("anchor")
    .description("print an anchor to keep elsewhere: it proves later that no line was changed or removed")
    .action(async (flags: ShowFlags) => {
      const { anchor } = await import("./ledger-run.ts");
      anchor(flags);
    });
  return addExamples(command, [
    ["gateway ledger anchor", "the number of lines and the hash of the last one"],
    ["gateway ledger verify --anchor 1204:9f86…", "are these lines still there, unchanged?"],
  ]);
}

function showCommand(): Command {
  const command = openCommand("show")
    .description("explain one request: usage × price, multiplier, rounding, attempts")
    .argument("<id>", "the x-request-id of the response, the beginning of it as in the log, or `last`")
    .option("--key <name>", "with `last`: the last request of this key")
    .action(async (id: string, flags: ShowFlags) => {
      const { show } = await import("./ledger-run.ts");
      show(id, flags);
    });
  return addExamples(command, [
    ["gateway ledger show req_01k…", "explain its charge"],
    ["gateway ledger show last --key laptop", "explain the key's last request"],
  ]);
}

function tailCommand(): Command {
  const command = openCommand("tail")
    .description("show the last lines, then new lines until interrupted")
    .option("-n, --lines <count>", "how many of the last lines to show", "10")
    .option("-f, --follow", "continue with new lines (the default)")
    .option("--no-follow", "stop after the last lines")
    .action(async (flags: TailFlags) => {
      const { tail } = await import("./ledger-run.ts");
      await tail(flags);
    });
  return addExamples(command, [
    ["gateway ledger tail", "follow new lines"],
    [
      "gateway ledger tail --no-follow -n 100 --json | jq .charge_usd",
      "the last hundred charges, for a script",
    ],
  ]);
}

function repriceCommand(): Command {
  const command = openCommand("reprice")
    .description("append corrections for requests whose price is missing or has changed")
    .requiredOption("--since <when>", "7d (the last seven days, including today), 12h, 2w, or a date")
    .option("--until <date>", "the last day to include")
    .option("--dry-run", "show what would change, and write nothing")
    .action(async (flags: RepriceFlags) => {
      const { repriceLedger } = await import("./reprice.ts");
      await repriceLedger(flags);
    });
  return addExamples(command, [
    ["gateway ledger reprice --since 7d --dry-run", "show what would change"],
    ["gateway ledger reprice --since 2026-11-01 --until 2026-11-30", "apply a new price to all of November"],
  ]);
}
