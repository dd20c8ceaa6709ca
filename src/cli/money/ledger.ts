// `gateway ledger …`: the flags. What each does is in ledger-run.ts and ledger-reprice.ts, loaded only when asked for.

import { Command } from "commander";
import { addExamples } from "../examples.ts";
import type { RepriceFlags } from "./reprice.ts";
import type { ShowFlags, TailFlags, VerifyFlags } from "./ledger-run.ts";

export function ledgerCommand(): Command {
  const command = new Command("ledger")
    .description("prove, explain and follow the file of charges")
    .addCommand(verifyCommand())
    .addCommand(anchorCommand())
    .addCommand(showCommand())
    .addCommand(tailCommand())
    .addCommand(repriceCommand());
  return addExamples(command, [
    ["gateway ledger verify", "is every amount right, and is every line there?"],
    ["gateway ledger show req_01k…", "how one charge came about"],
    ["gateway ledger tail", "new lines as they come"],
  ]);
}

function openCommand(name: string): Command {
  return new Command(name)
    .option("--ledger <file>", "another ledger than the config's")
    .option("--config <file>", "the config file")
    .option("--json", "JSON on stdout");
}

function verifyCommand(): Command {
  const command = openCommand("verify")
    .description("derive every amount again and follow the chain of hashes through all files")
    .option("--partial", "the oldest files are kept elsewhere")
    .option("--anchor <anchor>", "check that the ledger still has the lines of an anchor")
    .action(async (flags: VerifyFlags) => {
      const { verify } = await import("./ledger-run.ts");
      verify(flags);
    });
  return addExamples(command, [
    ["gateway ledger verify", "every amount and every link of the chain; exit status 1 if one is wrong"],
    ["gateway ledger verify --ledger backup/ledger.jsonl", "a copy"],
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
    .argument("<id>", "as the x-request-id of the answer says")
    .action(async (id: string, flags: ShowFlags) => {
      const { show } = await import("./ledger-run.ts");
      show(id, flags);
    });
  return addExamples(command, [["gateway ledger show req_01k…", "how its charge came about"]]);
}

function tailCommand(): Command {
  const command = openCommand("tail")
    .description("show the last lines, and those that come until interrupted")
    .option("-n, --lines <count>", "how many of the last", "10")
    .option("-f, --follow", "go on, as it does anyway")
    .option("--no-follow", "end after the last lines")
    .action(async (flags: TailFlags) => {
      const { tail } = await import("./ledger-run.ts");
      await tail(flags);
    });
  return addExamples(command, [
    ["gateway ledger tail", "new lines as they come"],
    ["gateway ledger tail --no-follow -n 100 --json | jq .charge_usd", "the last hundred, for a script"],
  ]);
}

function repriceCommand(): Command {
  const command = openCommand("reprice")
    .description("append corrections for requests that had no price, or another one than now")
    .requiredOption("--since <when>", "7d (the last seven days, today among them), 12h, 2w, or a date")
    .option("--until <date>", "the last day that counts")
    .option("--dry-run", "tell what would change, and write nothing")
    .action(async (flags: RepriceFlags) => {
      const { repriceLedger } = await import("./reprice.ts");
      await repriceLedger(flags);
    });
  return addExamples(command, [
    ["gateway ledger reprice --since 7d --dry-run", "what would change"],
    [
      "gateway ledger reprice --since 2026-11-01 --until 2026-11-30",
      "the whole of November, after a price was added",
    ],
  ]);
}
