// The actions of `gateway service`: write the unit and call systemd or launchd. Nothing starts without --enable.

import { existsSync, mkdirSync, readFileSync, rmSync } from "node:fs";
import { homedir, userInfo } from "node:os";
import { dirname, join } from "node:path";
import { configHome } from "../../config/file/find.ts";
import { readConfigText } from "../../config/file/load.ts";
import { listReferences } from "../../config/yaml/expand.ts";
import { getErrorMessage } from "../../lib/errors.ts";
import { replaceFile, requireOwn } from "../../lib/files/own-file.ts";
import { PLATFORM } from "../../lib/files/platform.ts";
import { quoteWord } from "../../lib/text/shell-word.ts";
import { openConfig, type ConfigFlags } from "../access/config.ts";
import { findOwnCommand } from "../terminal/own-command.ts";
import { fail, print, printJson, printNote } from "../terminal/terminal.ts";
import launchd from "./unit-launchd.txt" with { type: "text" };
import systemd from "./unit-systemd.txt" with { type: "text" };
import windows from "./unit-windows.txt" with { type: "text" };

type Command = readonly string[];

/** What differs between the systems. */
interface System {
  readonly path: string;
  readonly write: (spec: ServiceSpec) => string;
  readonly enable: readonly Command[];
  /** They may fail when there is nothing to stop. */
  readonly disable: readonly Command[];
  readonly reload?: Command;
  readonly logs: string;
  /** Each asks the system, and looks for this in its reply. */
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
    // What schtasks prints is in the user's language.
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
  const describe = SYSTEMS[process.platform];
  return (
    describe?.() ??
    fail(
      "This system has neither systemd nor launchd. Run `gateway serve` at login with its task scheduler instead.",
    )
  );
}

export function installUnit(flags: ConfigFlags & { readonly enable?: true }): void {
  const system = findSystem();
  const { path: configPath } = openConfig(flags);
  const envPath = join(dirname(configPath), "gateway.env");
  const spec = { command: findOwnCommand(), configPath, envPath };
  for (const word of [...spec.command, configPath]) {
    if (/\p{Cc}/u.test(word)) fail("A unit cannot contain a path with control characters.");
    if (process.platform === "win32" && word.includes("%"))
      fail("A task cannot contain a path with a percent sign.");
  }
  if (readOwnUnit(system.path)?.includes(MARK) === false)
    fail(`${system.path} already exists, and gateway did not write it. Move it away first.`);
  mkdirSync(dirname(system.path), { recursive: true });
  replaceFile(system.path, system.write(spec), { mode: 0o644 });
  print(system.path);
  warnOfMissingVariables(spec);
  const commands = [...(system.reload === undefined ? [] : [system.reload]), ...system.enable];
  if (flags.enable !== true) {
    const lines = commands.map((words) => words.map(quoteWord).join(" ")).join(" && ");
    return printNote(`The service is off. To start it now and at every login: ${lines}`);
  }
  for (const words of commands) {
    const { ok, text } = run(words);
    if (!ok) fail(`\`${words.join(" ")}\` failed: ${text}`);
  }
  printNote(`The service runs now and at every login. Its log: ${system.logs}`);
  if (process.platform === "linux") printNote("To run it without a login as well: loginctl enable-linger");
}

/** Null: there is none. Fails when something else than a file of this user is in its place. */
function readOwnUnit(path: string): string | null {
  try {
    return requireOwn(path) === null ? null : readFileSync(path, "utf8");
  } catch (error) {
    return fail(`The unit was not changed: ${getErrorMessage(error)}.`);
  }
}

function warnOfMissingVariables({ configPath, envPath }: ServiceSpec): void {
  const there = existsSync(envPath) ? readFileSync(envPath, "utf8") : "";
  const missing = listReferences(readConfigText(configPath)).filter(
    (name) => !new RegExp(`^\\s*(export )?${name}=`, "m").test(there),
  );
  if (missing.length > 0)
    printNote(
      `The service does not see your shell's variables. Put ${missing.join(", ")} into ${envPath} ` +
        `as NAME=value lines (${PLATFORM.keepOut(envPath)}).`,
    );
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
  // As systemctl does.
  if (!running) process.exitCode = 3;
  if (flags.json === true) return printJson({ installed, enabled, running, path });
  if (!installed) print("not installed");
  else print(`${running ? "running" : "not running"}, ${enabled ? "starts at login" : "off"}: ${path}`);
  printNote(installed ? `Its log: ${logs}` : "`gateway service install` installs it.");
}

function run([program = "", ...words]: Command): { readonly ok: boolean; readonly text: string } {
  if (Bun.which(program) === null) return { ok: false, text: `there is no ${program} here` };
  const { exitCode, stdout, stderr } = Bun.spawnSync([program, ...words], { stdin: "ignore" });
  return { ok: exitCode === 0, text: `${stdout.toString()}${stderr.toString()}`.trim() };
}

/** Marks a unit as ours. A file without it is never overwritten. */
export const MARK = "Written by `gateway service install`";
export const LABEL = "local.gateway";
export const UNIT_NAME = "gateway.service";

export interface ServiceSpec {
  /** The executable and its first arguments. */
  readonly command: readonly string[];
  readonly configPath: string;
  /** A file of `NAME=value` lines, because a service does not see the variables of a shell. */
  readonly envPath: string;
}

function fill(text: string, values: Readonly<Record<string, string>>): string {
  const all: typeof values = { MARK, LABEL, ...values };
  return text.replaceAll(/\{([A-Z]+)\}/g, (whole, name: string) => all[name] ?? whole);
}

export function writeUnit({ command, configPath, envPath }: ServiceSpec): string {
  const words = [...command, "serve", "--config", configPath];
  // systemd refuses such characters in the path of an executable.
  const isOdd = /["'\\$]/.test(command[0] ?? "");
  const start = isOdd ? ["/bin/sh", "-c", 'exec "$0" "$@"', ...words] : words;
  return fill(systemd, { START: start.map(quoteForSystemd).join(" "), ENV: envPath.replaceAll("%", "%%") });
}

function quoteForSystemd(word: string): string {
  const escaped = word
    .replaceAll("%", "%%")
    .replaceAll("\\", "\\\\")
    .replaceAll('"', '\\"')
    .replaceAll("$", "$$$$");
  return /^[\w@%+=:,./-]+$/.test(word) ? escaped : `"${escaped}"`;
}

/** launchd cannot read a file of variables. A shell reads it, then replaces itself with the gateway. */
const READ_ENV = 'set -a; [ ! -f "$0" ] || . "$0"; set +a; exec "$@"';

export function writeAgent({ command, configPath, envPath }: ServiceSpec, logPath: string): string {
  const words = ["/bin/sh", "-c", READ_ENV, envPath, ...command, "serve", "--config", configPath];
  const list = words.map((word) => `    <string>${escapeXml(word)}</string>`).join("\n");
  return fill(launchd, { WORDS: list, LOG: escapeXml(logPath) });
}

/** Windows has no unit of its own for a program of the user's session: a task starts it at logon. `conhost --headless` keeps
 *  its window away, and cmd writes its log. The gateway reads its file of variables itself. */
export function writeTask({ command, configPath }: ServiceSpec, user: string, logPath: string): string {
  const words = [...command, "serve", "--config", configPath].map((word) => `"${word}"`).join(" ");
  const args = `--headless cmd.exe /d /s /c "${words} >> "${logPath}" 2>&1"`;
  return fill(windows, { USER: escapeXml(user), ARGS: escapeXml(args) });
}

function escapeXml(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}
