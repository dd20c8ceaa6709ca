// The actions of `gateway service`: write the unit and call systemd or launchd. Nothing starts without --enable.

import { getErrorMessage } from "../../lib/errors.ts";
import { existsSync, mkdirSync, readFileSync, rmSync } from "node:fs";
import { homedir, userInfo } from "node:os";
import { dirname, join } from "node:path";
import { listReferences } from "../../config/yaml/expand.ts";
import { readConfigText } from "../../config/file/load.ts";
import { configHome } from "../../config/file/find.ts";
import { replaceFile, requireOwn } from "../../lib/files/own-file.ts";
import { PLATFORM } from "../../lib/files/platform.ts";
import { quoteWord } from "../../lib/text/shell-word.ts";
import { type ConfigFlags, openConfig } from "../access/config.ts";
import { findOwnCommand } from "../terminal/own-command.ts";
import {
  LABEL,
  MARK,
  UNIT_NAME,
  type ServiceSpec,
  writeAgent,
  writeTask,
  writeUnit,
} from "./service-unit.ts";
import { fail, print, printJson, printNote } from "../terminal/terminal.ts";

export interface InstallFlags extends ConfigFlags {
  readonly enable?: true;
}

/** What differs between the systems. */
interface System {
  readonly path: string;
  write(spec: ServiceSpec): string;
  /** Commands in their order. Those of `disable` may fail when there is nothing to stop. */
  readonly enable: readonly string[][];
  readonly disable: readonly string[][];
  readonly reload: readonly string[][];
  readonly logs: string;
  isEnabled(): boolean;
  isRunning(): boolean;
}

function findSystem(): System {
  if (process.platform === "darwin") return describeLaunchd();
  if (process.platform === "linux") return describeSystemd();
  if (process.platform === "win32") return describeTask();
  return fail(
    "This system has neither systemd nor launchd. Run `gateway serve` at login with its task scheduler instead.",
  );
}

function describeTask(): System {
  const folder = join(process.env["LOCALAPPDATA"] ?? join(homedir(), "AppData", "Local"), "gateway");
  const path = join(folder, "gateway-task.xml");
  const log = join(folder, "gateway.log");
  const task = (verb: string, ...more: string[]) => ["schtasks", `/${verb}`, "/TN", LABEL, ...more];
  const user = `${process.env["USERDOMAIN"] ?? "."}\\${userInfo().username}`;
  return {
    path,
    write: (spec) => writeTask(spec, user, log),
    enable: [task("Create", "/XML", path, "/F"), task("Run")],
    disable: [task("End"), task("Delete", "/F")],
    reload: [],
    logs: `Get-Content -Tail 20 ${quoteWord(log)}`,
    isEnabled: () => run(task("Query")).ok,
    // What schtasks prints is in the user's language.
    isRunning: () =>
      run(["powershell", "-NoProfile", "-Command", `(Get-ScheduledTask ${LABEL}).State -eq 'Running'`])
        .text === "True",
  };
}

function describeSystemd(): System {
  const systemctl = (...words: string[]) => ["systemctl", "--user", ...words];
  return {
    path: join(configHome(process.env), "systemd", "user", UNIT_NAME),
    write: writeUnit,
    enable: [systemctl("enable", "--now", UNIT_NAME)],
    disable: [systemctl("disable", "--now", UNIT_NAME)],
    reload: [systemctl("daemon-reload")],
    logs: `journalctl --user -u ${UNIT_NAME}`,
    isEnabled: () => run(systemctl("is-enabled", UNIT_NAME)).text === "enabled",
    isRunning: () => run(systemctl("is-active", UNIT_NAME)).text === "active",
  };
}

function describeLaunchd(): System {
  const library = join(process.env["HOME"] || homedir(), "Library");
  const path = join(library, "LaunchAgents", `${LABEL}.plist`);
  const domain = `gui/${userInfo().uid}`;
  const log = join(library, "Logs", "gateway.log");
  return {
    path,
    write: (spec) => writeAgent(spec, log),
    enable: [
      ["launchctl", "enable", `${domain}/${LABEL}`],
      ["launchctl", "bootstrap", domain, path],
    ],
    disable: [
      ["launchctl", "disable", `${domain}/${LABEL}`],
      ["launchctl", "bootout", `${domain}/${LABEL}`],
    ],
    reload: [],
    logs: `tail ${quoteWord(log)}`,
    isEnabled: () => run(["launchctl", "print-disabled", domain]).text.includes(`"${LABEL}" => enabled`),
    isRunning: () => run(["launchctl", "print", `${domain}/${LABEL}`]).text.includes("state = running"),
  };
}

export function installUnit(flags: InstallFlags): void {
  const system = findSystem();
  const { path: configPath } = openConfig(flags);
  const spec: ServiceSpec = {
    command: findOwnCommand(),
    configPath,
    envPath: join(dirname(configPath), "gateway.env"),
  };
  for (const word of [...spec.command, configPath]) {
    if (/\p{Cc}/u.test(word)) fail("A unit cannot contain a path with control characters.");
    if (process.platform === "win32" && word.includes("%"))
      fail("A task cannot contain a path with a percent sign.");
  }
  if (hasOwnUnit(system.path) && !readFileSync(system.path, "utf8").includes(MARK)) {
    fail(`${system.path} already exists, and gateway did not write it. Move it away first.`);
  }
  mkdirSync(dirname(system.path), { recursive: true });
  replaceFile(system.path, system.write(spec), { mode: 0o644 });
  print(system.path);
  warnOfMissingVariables(spec);
  const commands = [...system.reload, ...system.enable];
  if (flags.enable !== true) {
    printNote(`The service is off. To start it now and at every login: ${writeCommands(commands)}`);
    return;
  }
  commands.forEach(runOrFail);
  printNote(`The service runs now and at every login. Its log: ${system.logs}`);
  if (process.platform === "linux") printNote("To run it without a login as well: loginctl enable-linger");
}

/** Fails when something else than a file of this user is in its place. */
function hasOwnUnit(path: string): boolean {
  try {
    return requireOwn(path) !== null;
  } catch (error) {
    return fail(`The unit was not changed: ${getErrorMessage(error)}.`);
  }
}

function warnOfMissingVariables({ configPath, envPath }: ServiceSpec): void {
  const there = existsSync(envPath) ? readFileSync(envPath, "utf8") : "";
  const missing = listReferences(readConfigText(configPath)).filter(
    (name) => !new RegExp(`^\\s*(export )?${name}=`, "m").test(there),
  );
  if (missing.length === 0) return;
  printNote(
    `The service does not see your shell's variables. Put ${missing.join(", ")} into ${envPath} ` +
      `as NAME=value lines (${PLATFORM.keepOut(envPath)}).`,
  );
}

export function uninstallUnit(): void {
  const system = findSystem();
  if (!hasOwnUnit(system.path)) fail(`The service is not installed: there is no ${system.path}.`);
  if (!readFileSync(system.path, "utf8").includes(MARK)) {
    fail(`${system.path} was not written by gateway, and stays.`);
  }
  // These fail when the service was never enabled.
  for (const words of system.disable) run(words);
  rmSync(system.path);
  for (const words of system.reload) run(words);
  printNote(`Removed ${system.path}. Config and ledger stay.`);
}

export function showStatus(flags: { readonly json?: true }): void {
  const system = findSystem();
  const installed = existsSync(system.path);
  const enabled = installed && system.isEnabled();
  const running = installed && system.isRunning();
  // As systemctl does.
  if (!running) process.exitCode = 3;
  if (flags.json === true) {
    printJson({ installed, enabled, running, path: system.path });
    return;
  }
  if (!installed) print("not installed");
  else
    print(`${running ? "running" : "not running"}, ${enabled ? "starts at login" : "off"}: ${system.path}`);
  printNote(installed ? `Its log: ${system.logs}` : "`gateway service install` installs it.");
}

const writeCommands = (list: readonly string[][]): string =>
  list.map((words) => words.map(quoteWord).join(" ")).join(" && ");

function run([program = "", ...words]: readonly string[]): { readonly ok: boolean; readonly text: string } {
  if (Bun.which(program) === null) return { ok: false, text: `there is no ${program} here` };
  const { exitCode, stdout, stderr } = Bun.spawnSync([program, ...words], { stdin: "ignore" });
  return { ok: exitCode === 0, text: `${stdout.toString()}${stderr.toString()}`.trim() };
}

function runOrFail(words: readonly string[]): void {
  const { ok, text } = run(words);
  if (!ok) fail(`\`${words.join(" ")}\` failed: ${text}`);
}
