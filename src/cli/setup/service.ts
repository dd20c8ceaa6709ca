// `gateway service`. Starts nothing without --enable.

import { existsSync, mkdirSync, readFileSync, rmSync } from "node:fs";
import { homedir, userInfo } from "node:os";
import { dirname, join } from "node:path";
import { configHome } from "../../config/file/find.ts";
import { messageOf } from "../../lib/errors.ts";
import { replaceFile, requireOwn } from "../../lib/files/own-file.ts";
import { PLATFORM } from "../../lib/files/platform.ts";
import { quoteWord } from "../../lib/text/shell-word.ts";
import { type ConfigFlags, openConfig } from "../access/config.ts";
import { listUnset } from "../access/credential-place.ts";
import { findOwnCommand } from "../terminal/own-command.ts";
import { fail, print, printJson, printNote } from "../terminal/terminal.ts";
import {
  LABEL,
  MARK,
  type ServiceSpec,
  UNIT_NAME,
  writeAgent,
  writeTask,
  writeUnit,
} from "./service-unit.ts";

type Command = readonly string[];

interface System {
  readonly path: string;
  readonly write: (spec: ServiceSpec) => string;
  readonly enable: readonly Command[];
  readonly disable: readonly Command[];
  readonly reload?: Command;
  readonly logs: string;
  readonly isEnabled: readonly [Command, reply: RegExp];
  readonly isRunning: readonly [Command, reply: RegExp];
}

const SYSTEMS: Readonly<Partial<Record<NodeJS.Platform, () => System>>> = {
  linux: () => {
    const systemctl = (...words: string[]) => ["systemctl", "--user", ...words];
    return {
      path: join(configHome(process.env), "systemd", "user", UNIT_NAME),
      write: writeUnit,
      enable: [systemctl("enable", "--now", UNIT_NAME)],
      disable: [systemctl("disable", "--now", UNIT_NAME)],
      reload: systemctl("daemon-reload"),
      logs: `journalctl --user -u ${UNIT_NAME}`,
      isEnabled: [systemctl("is-enabled", UNIT_NAME), /^enabled$/],
      isRunning: [systemctl("is-active", UNIT_NAME), /^active$/],
    };
  },
  darwin: () => {
    const library = join(process.env["HOME"] || homedir(), "Library");
    const path = join(library, "LaunchAgents", `${LABEL}.plist`);
    const log = join(library, "Logs", "gateway.log");
    const domain = `gui/${userInfo().uid}`;
    const launchctl = (...words: string[]) => ["launchctl", ...words];
    return {
      path,
      write: (spec) => writeAgent(spec, log),
      enable: [launchctl("enable", `${domain}/${LABEL}`), launchctl("bootstrap", domain, path)],
      disable: [launchctl("disable", `${domain}/${LABEL}`), launchctl("bootout", `${domain}/${LABEL}`)],
      logs: `tail ${quoteWord(log)}`,
      isEnabled: [launchctl("print-disabled", domain), new RegExp(`"${LABEL}" => enabled`)],
      isRunning: [launchctl("print", `${domain}/${LABEL}`), /state = running/],
    };
  },
  win32: () => {
    const folder = join(process.env["LOCALAPPDATA"] ?? join(homedir(), "AppData", "Local"), "gateway");
    const path = join(folder, "gateway-task.xml");
    const log = join(folder, "gateway.log");
    const task = (verb: string, ...more: string[]) => ["schtasks", `/${verb}`, "/TN", LABEL, ...more];
    // schtasks prints in the user's language, so PowerShell answers.
    const state = `(Get-ScheduledTask ${LABEL}).State -eq 'Running'`;
    return {
      path,
      write: (spec) => writeTask(spec, `${process.env["USERDOMAIN"] ?? "."}\\${userInfo().username}`, log),
      enable: [task("Create", "/XML", path, "/F"), task("Run")],
      disable: [task("End"), task("Delete", "/F")],
      logs: `Get-Content -Tail 20 ${quoteWord(log)}`,
      isEnabled: [task("Query"), /^/],
      isRunning: [["powershell", "-NoProfile", "-Command", state], /^True$/],
    };
  },
};

function findSystem(): System {
  const none = "There is neither systemd nor launchd. Start `gateway serve` at login by other means.";
  return SYSTEMS[process.platform]?.() ?? fail(none);
}

export function installUnit(flags: ConfigFlags & { readonly enable?: true }): void {
  const system = findSystem();
  const { path: configPath, source } = openConfig(flags);
  const envPath = join(dirname(configPath), "gateway.env");
  const spec = { command: findOwnCommand(), configPath, envPath };
  const words = [...spec.command, configPath].join(" ");
  if (/\p{Cc}/u.test(words)) fail("A unit cannot contain a path with control characters.");
  if (process.platform === "win32" && words.includes("%"))
    fail("A task cannot contain a path with a percent sign.");
  if (readOwnUnit(system.path)?.includes(MARK) === false)
    fail(`${system.path} exists, and gateway did not write it. Move it away first.`);
  mkdirSync(dirname(system.path), { recursive: true });
  replaceFile(system.path, system.write(spec), { mode: 0o644 });
  print(system.path);
  warnOfMissingVariables(spec, source);
  const commands = [...(system.reload === undefined ? [] : [system.reload]), ...system.enable];
  if (flags.enable !== true) {
    const lines = commands.map((command) => command.map(quoteWord).join(" ")).join(" && ");
    return printNote(`Nothing was started. To start the service now and at every login: ${lines}`);
  }
  for (const command of commands) {
    const { ok, text } = run(command);
    if (!ok) fail(`\`${command.join(" ")}\` failed: ${text}`);
  }
  printNote(`The service runs now and at every login. Its log: ${system.logs}`);
  if (process.platform === "linux") printNote("To run it without a login as well: loginctl enable-linger");
}

function readOwnUnit(path: string): string | null {
  try {
    return requireOwn(path) === null ? null : readFileSync(path, "utf8");
  } catch (error) {
    return fail(`The unit was not changed: ${messageOf(error)}.`);
  }
}

function warnOfMissingVariables({ configPath, envPath }: ServiceSpec, source: unknown): void {
  const missing = listUnset(source, configPath, {});
  if (missing.length === 0) return;
  const lines = `${missing.join(", ")} into ${envPath} as NAME=value lines (${PLATFORM.keepOut(envPath)})`;
  printNote(`The service does not see your shell's variables. Put ${lines}.`);
}

export function uninstallUnit(): void {
  const { path, disable, reload } = findSystem();
  const unit = readOwnUnit(path) ?? fail(`The service is not installed: there is no ${path}.`);
  if (!unit.includes(MARK)) fail(`${path} was not written by gateway, and stays.`);
  for (const words of disable) run(words);
  rmSync(path);
  if (reload !== undefined) run(reload);
  printNote(`Removed ${path}. Config and ledger stay.`);
}

export function showStatus(flags: { readonly json?: true }): void {
  const { path, logs, isEnabled, isRunning } = findSystem();
  const installed = existsSync(path);
  const says = ([words, reply]: System["isEnabled"]): boolean => {
    const { ok, text } = installed ? run(words) : { ok: false, text: "" };
    return ok && reply.test(text);
  };
  const [enabled, running] = [says(isEnabled), says(isRunning)];
  if (!running) process.exitCode = 3;
  if (flags.json === true) return printJson({ installed, enabled, running, path });
  if (!installed) print("not installed");
  else print(`${running ? "running" : "not running"}, ${enabled ? "starts at login" : "off"}: ${path}`);
  printNote(installed ? `Its log: ${logs}` : "`gateway service install` installs it.");
}

function run([program = "", ...words]: Command) {
  if (Bun.which(program) === null) return { ok: false, text: `there is no ${program} here` };
  const { exitCode, stdout, stderr } = Bun.spawnSync([program, ...words], { stdin: "ignore" });
  return { ok: exitCode === 0, text: `${stdout.toString()}${stderr.toString()}`.trim() };
}
