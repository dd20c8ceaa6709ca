// `gateway service`: writes the unit and asks systemd or launchd. Nothing is started unless the user says so.

import { existsSync, mkdirSync, readFileSync, rmSync } from "node:fs";
import { homedir, userInfo } from "node:os";
import { dirname, join, resolve } from "node:path";
import { listReferences } from "../../config/expand.ts";
import { readConfigText } from "../../config/file.ts";
import { configHome } from "../../config/find.ts";
import { replaceFile, requireOwn } from "../../lib/own-file.ts";
import { quoteWord } from "../../lib/shell-word.ts";
import { type ConfigFlags, describe, openConfig } from "../config-access.ts";
import { LABEL, MARK, UNIT_NAME, type Wish, writeAgent, writeUnit } from "./service-unit.ts";
import { fail, print, printJson, tell } from "../terminal.ts";

export interface InstallFlags extends ConfigFlags {
  readonly enable?: true;
}

export interface StatusFlags {
  readonly json?: true;
}

/** What differs between the systems. */
interface System {
  readonly path: string;
  write(wish: Wish): string;
  /** Commands in their order; of `disable`, the last may fail: there may be nothing to stop. */
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
  return fail(
    "This system has neither systemd nor launchd: have its task scheduler run `gateway serve` at login instead.",
  );
}

function describeSystemd(): System {
  const ask = (...words: string[]) => ["systemctl", "--user", ...words];
  return {
    path: join(configHome(process.env), "systemd", "user", UNIT_NAME),
    write: writeUnit,
    enable: [ask("enable", "--now", UNIT_NAME)],
    disable: [ask("disable", "--now", UNIT_NAME)],
    reload: [ask("daemon-reload")],
    logs: `journalctl --user -u ${UNIT_NAME}`,
    isEnabled: () => run(ask("is-enabled", UNIT_NAME)).text === "enabled",
    isRunning: () => run(ask("is-active", UNIT_NAME)).text === "active",
  };
}

function describeLaunchd(): System {
  const library = join(process.env["HOME"] || homedir(), "Library");
  const path = join(library, "LaunchAgents", `${LABEL}.plist`);
  const domain = `gui/${userInfo().uid}`;
  const log = join(library, "Logs", "gateway.log");
  return {
    path,
    write: (wish) => writeAgent(wish, log),
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
  const wish: Wish = {
    command: findOwnCommand(),
    configPath,
    envPath: join(dirname(configPath), "gateway.env"),
  };
  for (const word of [...wish.command, configPath]) {
    if (/\p{Cc}/u.test(word)) fail("A path with control characters in it cannot be written into a unit.");
  }
  if (isThere(system.path) && !readFileSync(system.path, "utf8").includes(MARK)) {
    fail(`${system.path} exists already and was not written by gateway: move it away first.`);
  }
  mkdirSync(dirname(system.path), { recursive: true });
  replaceFile(system.path, system.write(wish), { mode: 0o644 });
  print(system.path);
  tellVariables(wish);
  const commands = [...system.reload, ...system.enable];
  if (flags.enable !== true) {
    tell(
      `It is off. This starts it, now and at every login: ${commands.map((words) => words.map(quoteWord).join(" ")).join(" && ")}`,
    );
    return;
  }
  commands.forEach(runOrFail);
  tell(`It runs, now and at every login. Its log: ${system.logs}`);
  if (process.platform === "linux") tell("To have it run without a login as well: loginctl enable-linger");
}

/** As a file that may be written. */
function isThere(path: string): boolean {
  try {
    return requireOwn(path) !== null;
  } catch (error) {
    return fail(`The unit stays as it is: ${describe(error)}.`);
  }
}

function tellVariables({ configPath, envPath }: Wish): void {
  const there = existsSync(envPath) ? readFileSync(envPath, "utf8") : "";
  const missing = listReferences(readConfigText(configPath)).filter(
    (name) => !new RegExp(`^\\s*(export )?${name}=`, "m").test(there),
  );
  if (missing.length === 0) return;
  tell(
    `It does not see your shell's variables: ${missing.join(", ")} ${missing.length === 1 ? "belongs" : "belong"} ` +
      `into ${envPath}, as NAME=value lines (chmod 600).`,
  );
}

/** The executable, or the runtime with the program's file where it runs from its source. */
function findOwnCommand(): string[] {
  const isCompiled = /^(\/\$bunfs\/|[A-Z]:[/\\]~BUN[/\\])/.test(Bun.main);
  return isCompiled ? [process.execPath] : [process.execPath, resolve(Bun.main)];
}

export function uninstallUnit(): void {
  const system = findSystem();
  if (!isThere(system.path)) fail(`It is not installed: there is no ${system.path}.`);
  if (!readFileSync(system.path, "utf8").includes(MARK)) {
    fail(`${system.path} was not written by gateway: it stays.`);
  }
  // Fails when it was never enabled.
  for (const words of system.disable) run(words);
  rmSync(system.path);
  for (const words of system.reload) run(words);
  tell(`${system.path} is gone. Config and ledger stay.`);
}

export function showStatus(flags: StatusFlags): void {
  const system = findSystem();
  const installed = existsSync(system.path);
  const enabled = installed && system.isEnabled();
  const running = installed && system.isRunning();
  if (flags.json === true) {
    printJson({ installed, enabled, running, path: system.path });
    return;
  }
  if (!installed) print("not installed");
  else
    print(`${running ? "running" : "not running"}, ${enabled ? "starts at login" : "off"}: ${system.path}`);
  tell(installed ? `Its log: ${system.logs}` : "`gateway service install` writes it.");
}

interface Outcome {
  readonly ok: boolean;
  readonly text: string;
}

function run([program = "", ...words]: readonly string[]): Outcome {
  if (Bun.which(program) === null) return { ok: false, text: `there is no ${program} here` };
  const { exitCode, stdout, stderr } = Bun.spawnSync([program, ...words], { stdin: "ignore" });
  return { ok: exitCode === 0, text: `${stdout.toString()}${stderr.toString()}`.trim() };
}

function runOrFail(words: readonly string[]): void {
  const { ok, text } = run(words);
  if (!ok) fail(`\`${words.join(" ")}\` failed: ${text}`);
}
