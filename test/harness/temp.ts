// Makes folders for tests, and reads ledgers in them.

import { afterEach, beforeEach, expect } from "bun:test";
import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { loadConfig } from "../../src/config/file/load.ts";
import { removeFolder } from "../../src/lib/files/own-file.ts";

/** A folder that `using` or `remove()` deletes. */
export interface TempFolder extends Disposable {
  readonly path: string;
  join(...parts: string[]): string;
  remove(): void;
}

export function makeTempFolder(): TempFolder {
  const path = mkdtempSync(join(tmpdir(), "gateway-test-"));
  const remove = (): void => removeFolder(path);
  return { path, join: (...parts) => join(path, ...parts), remove, [Symbol.dispose]: remove };
}

/** A folder that is new for each test, with this text as its gateway.yaml. */
export function useFolder(config?: string) {
  const folder = makeTempFolder();
  const place = folder.join("gateway.yaml");
  beforeEach(() => {
    mkdirSync(folder.path, { recursive: true });
    if (config !== undefined) writeFileSync(place, config, { mode: 0o600 });
  });
  afterEach(() => folder.remove());
  const catalog = (env = {}) => loadConfig(place, env, { missing: "keep" }).catalog;
  return { ...folder, catalog, text: () => readFileSync(place, "utf8") };
}

/** The folder of this test run: surroundings.ts deletes it at the end. */
export const SWEPT = join(tmpdir(), `gateway-tests-${process.pid}`);

/** Makes a folder that is deleted at the end of the run. */
export function makeSweptFolder(): string {
  mkdirSync(SWEPT, { recursive: true });
  return mkdtempSync(join(SWEPT, "folder-"));
}

/** Expects a file to have this mode. On Windows, it expects nothing: files there have access lists in place of modes. */
export function expectMode(path: string, mode: number): void {
  if (process.platform !== "win32") expect((statSync(path).mode & 0o777).toString(8)).toBe(mode.toString(8));
}

/** Reads the ledger's lines that have this text in them. Throws if the last line is torn. */
export function readLedger(path: string, wanted = ""): Record<string, unknown>[] {
  const text = readFileSync(path, "utf8");
  if (text !== "" && !text.endsWith("\n")) throw new Error(`the last line of ${path} is torn`);
  return text
    .split("\n")
    .slice(0, -1)
    .filter((line) => line.includes(wanted))
    .map((line) => JSON.parse(line));
}

// ── Another user ─────────────────────────────────────────────────────────────
// Code that runs as another user, for tests that show which files the gateway trusts. Its modules are loaded before it
// changes the user, because the repository may be in a folder that only root can enter.

/** Whether this process can become another user: only root can. */
export const canBeOther = process.getuid?.() === 0;

export const OTHER_ID = 65_534;

/** Runs `code` as another user, and returns what it prints. `imports` maps each module to names in it. */
export function runAsOther(imports: Readonly<Record<string, string>>, code: string): string {
  const lines = Object.entries(imports).map(
    ([path, names]) => `import { ${names} } from ${JSON.stringify(path)};`,
  );
  const become = `process.setgroups([]); process.setgid(${OTHER_ID}); process.setuid(${OTHER_ID});`;
  const child = Bun.spawnSync([process.execPath, "-e", [...lines, become, code].join("\n")]);
  return child.stdout.toString() + child.stderr.toString();
}

/** Makes a folder that everybody can use, wherever this user's temporary files are. */
export function makeSharedFolder(): Disposable & { readonly path: string } {
  const path = realpathSync(mkdtempSync("/tmp/gateway-test-"));
  chmodSync(path, 0o777);
  return { path, [Symbol.dispose]: () => rmSync(path, { recursive: true, force: true }) };
}
