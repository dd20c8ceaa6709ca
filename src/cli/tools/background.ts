// Starts `gateway serve` in the background, for `gateway run` and `gateway init`.

import { spawn } from "node:child_process";
import { closeSync, constants, mkdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { stateFolder } from "../../config/file/find.ts";
import type { LoadedConfig } from "../../config/file/load.ts";
import { openOwn } from "../../lib/files/own-file.ts";
import { PLATFORM } from "../../lib/files/platform.ts";
import { findOwnCommand } from "../terminal/own-command.ts";
import { askYes, canPrompt, fail, printNote } from "../terminal/terminal.ts";
import { type Address, findRunning, formatBaseUrl } from "../access/running.ts";

export async function offerStart(loaded: LoadedConfig): Promise<Address> {
  const absent = `No gateway is running with ${loaded.path}.`;
  if (!canPrompt())
    return fail(
      `${absent} Start it with \`gateway serve\`, or in the background with \`gateway service install --enable\`.`,
    );
  if (!(await askYes("The gateway is not running. Start it in the background?", true)))
    return fail(`${absent} Start it with \`gateway serve\`.`);
  return startInBackground(loaded);
}

const START_WAIT_MS = 30_000;

async function startInBackground({ path, catalog }: LoadedConfig): Promise<Address> {
  const log = join(stateFolder(process.env), "gateway.log");
  const { pid, hasEnded } = spawnDetached(path, log);
  const deadline = performance.now() + START_WAIT_MS;
  while (!hasEnded() && performance.now() < deadline) {
    const running = await findRunning(catalog.ledger.path);
    if (running !== null) {
      const base = formatBaseUrl(running.address);
      printNote(
        `The gateway runs on ${base} (process ${pid}; \`${PLATFORM.end(pid)}\` stops it). Its log: ${log}`,
      );
      return running.address;
    }
    await Bun.sleep(30);
  }
  const last = readFileSync(log, "utf8").trimEnd().split("\n").slice(-3).join("\n");
  return fail(`The gateway did not start. The end of its log ${log}:\n${last}`);
}

/** In a session of its own: Ctrl-C and a closed terminal do not reach it. */
function spawnDetached(configPath: string, log: string): { pid: number; hasEnded: () => boolean } {
  mkdirSync(dirname(log), { recursive: true, mode: 0o700 });
  const output = openOwn(log, { flags: constants.O_WRONLY | constants.O_APPEND | constants.O_CREAT });
  const [program = "", ...first] = findOwnCommand();
  const child = spawn(program, [...first, "serve", "--config", configPath], {
    cwd: dirname(configPath),
    detached: true,
    stdio: ["ignore", output, output],
  });
  closeSync(output);
  let ended = false;
  child.once("exit", () => (ended = true));
  child.once("error", () => (ended = true));
  child.unref();
  return { pid: child.pid ?? 0, hasEnded: () => ended };
}
