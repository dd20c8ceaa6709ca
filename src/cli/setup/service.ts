// `gateway service`: the flags. What it does is service-run.ts, loaded only when asked for.

import { Command } from "commander";
import { addExamples } from "../examples.ts";
import type { InstallFlags, StatusFlags } from "./service-run.ts";

export function serviceCommand(): Command {
  const command = new Command("service")
    .description("run the gateway in the background: a systemd user unit, or a launchd agent on macOS")
    .addCommand(installCommand())
    .addCommand(uninstallCommand())
    .addCommand(statusCommand());
  return addExamples(command, [
    ["gateway service install --enable", "have it run from now on"],
    ["gateway service status", "does it run?"],
  ]);
}

function installCommand(): Command {
  const command = new Command("install")
    .description("write the unit; it is off unless --enable is there")
    .option("--enable", "also start it now and at every login")
    .option("--config <file>", "the config file that it runs with")
    .action(async (flags: InstallFlags) => {
      const { installUnit } = await import("./service-run.ts");
      installUnit(flags);
    });
  return addExamples(command, [
    ["gateway service install", "write it, look at it, and decide then"],
    ["gateway service install --enable --config ~/gateway.yaml", "have it run from now on"],
  ]);
}

function uninstallCommand(): Command {
  const command = new Command("uninstall")
    .description("stop it and take the unit away; config and ledger stay")
    .option("--config <file>", "as for every command; this one does not read it")
    .action(async () => {
      const { uninstallUnit } = await import("./service-run.ts");
      uninstallUnit();
    });
  return addExamples(command, [["gateway service uninstall", "nothing runs in the background any more"]]);
}

function statusCommand(): Command {
  const command = new Command("status")
    .description("say whether it is installed, enabled and running")
    .option("--config <file>", "as for every command; this one does not read it")
    .option("--json", "one JSON document on stdout")
    .action(async (flags: StatusFlags) => {
      const { showStatus } = await import("./service-run.ts");
      showStatus(flags);
    });
  return addExamples(command, [["gateway service status --json", "for a script"]]);
}
