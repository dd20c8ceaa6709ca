// `gateway service`: the flags. The actions are in service-run.ts, which loads only when they run.

import { Command } from "commander";
import { addExamples } from "../terminal/help-text.ts";
import type { InstallFlags, StatusFlags } from "./service-run.ts";

export function serviceCommand(): Command {
  const command = new Command("service")
    .description("run the gateway in the background: a systemd user unit, or a launchd agent on macOS")
    .addCommand(installCommand())
    .addCommand(uninstallCommand())
    .addCommand(statusCommand());
  return addExamples(command, [
    ["gateway service install --enable", "run it now and at every login"],
    ["gateway service status", "show whether it runs"],
  ]);
}

function installCommand(): Command {
  const command = new Command("install")
    .description("write the unit; with --enable, also start it")
    .option("--enable", "start it now and at every login")
    .option("--config <file>", "the config file of the service")
    .action(async (flags: InstallFlags) => {
      const { installUnit } = await import("./service-run.ts");
      installUnit(flags);
    });
  return addExamples(command, [
    ["gateway service install", "write the unit, but start nothing"],
    ["gateway service install --enable --config ~/gateway.yaml", "run it now and at every login"],
  ]);
}

function uninstallCommand(): Command {
  const command = new Command("uninstall")
    .description("stop it and remove the unit; config and ledger stay")
    .option("--config <file>", "accepted like everywhere, but not read")
    .action(async () => {
      const { uninstallUnit } = await import("./service-run.ts");
      uninstallUnit();
    });
  return addExamples(command, [["gateway service uninstall", "run nothing in the background"]]);
}

function statusCommand(): Command {
  const command = new Command("status")
    .description("show whether it is installed, enabled and running; exit status 3 if it is not running")
    .option("--config <file>", "accepted like everywhere, but not read")
    .option("--json", "one JSON document on stdout")
    .action(async (flags: StatusFlags) => {
      const { showStatus } = await import("./service-run.ts");
      showStatus(flags);
    });
  return addExamples(command, [["gateway service status --json", "for a script"]]);
}
