// The secrets of tools' own keys beside the config: the config decides which of them are used.

import { expect, test } from "bun:test";
import { symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Catalog } from "../../../src/config/catalog.ts";
import {
  findStoredSecret,
  listToolKeys,
  removeToolSecrets,
  replaceToolSecret,
  storeToolSecret,
} from "../../../src/config/changes/tool-secrets.ts";
import { checkConfigText } from "../../../src/config/file/load.ts";
import { expectMode, makeSweptFolder } from "../../harness/temp.ts";

function makeConfig(): string {
  const path = join(makeSweptFolder(), "gateway.yaml");
  writeFileSync(path, "# not read here\n");
  return path;
}

/** A config with these keys and their secrets. */
function catalogOf(keys: Readonly<Record<string, string>>): Catalog {
  const list = Object.entries(keys).map(([name, secret]) => ({ name, group: "g", secret }));
  const text = `
channels: { a: { platform: messages, base_url: https://a.example, credential: x } }
groups: { g: { platform: messages, channels: [a] } }
keys: ${JSON.stringify(list)}`;
  return checkConfigText(text, "/etc/g.yaml", {}).catalog;
}

const secretsOf = (path: string, catalog: Catalog, tool = "claude"): string[] =>
  listToolKeys(tool, path, catalog).map(({ key, secret }) => `${key.name} ${secret}`);

test("the newest secret of a tool comes first, and only the user can read the file", () => {
  const path = makeConfig();
  storeToolSecret({ tool: "claude", key: "claude", secret: "sk-1" }, path);
  storeToolSecret({ tool: "codex", key: "codex", secret: "sk-2" }, path);
  storeToolSecret({ tool: "claude", key: "claude-2", secret: "sk-3" }, path);
  const catalog = catalogOf({ claude: "sk-1", codex: "sk-2", "claude-2": "sk-3" });
  expect(secretsOf(path, catalog)).toEqual(["claude-2 sk-3", "claude sk-1"]);
  expect(secretsOf(path, catalog, "codex")).toEqual(["codex sk-2"]);
  expectMode(join(path, "../.gateway.yaml.tool-keys"), 0o600);
});

test("a secret is not used if its key is gone, or has another one, or if another key has it", () => {
  const path = makeConfig();
  storeToolSecret({ tool: "claude", key: "claude", secret: "sk-1" }, path);
  for (const keys of [
    {},
    { claude: "sk-other" },
    { laptop: "sk-1" },
    { claude: "sk-other", laptop: "sk-1" },
  ]) {
    const catalog = catalogOf(keys);
    expect(secretsOf(path, catalog)).toEqual([]);
    expect(findStoredSecret("claude", path, catalog)).toBeNull();
    expect(findStoredSecret("laptop", path, catalog)).toBeNull();
  }
  expect(findStoredSecret("claude", path, catalogOf({ claude: "sk-1" }))).toBe("sk-1");
});

test("a key that gets a new secret keeps its place, and a removed one is forgotten", () => {
  const path = makeConfig();
  storeToolSecret({ tool: "claude", key: "old", secret: "sk-1" }, path);
  storeToolSecret({ tool: "claude", key: "new", secret: "sk-2" }, path);
  replaceToolSecret("old", "sk-3", path);
  replaceToolSecret("of no tool", "sk-4", path);
  const catalog = catalogOf({ old: "sk-3", new: "sk-2" });
  expect(secretsOf(path, catalog)).toEqual(["new sk-2", "old sk-3"]);
  removeToolSecrets(["new", "of no tool"], path);
  expect(secretsOf(path, catalog)).toEqual(["old sk-3"]);
});

test.skipIf(process.platform === "win32")(
  "the file is beside the config itself, not beside a link to it",
  () => {
    const path = makeConfig();
    const link = join(makeSweptFolder(), "linked.yaml");
    symlinkSync(path, link);
    storeToolSecret({ tool: "claude", key: "claude", secret: "sk-1" }, link);
    expect(secretsOf(path, catalogOf({ claude: "sk-1" }))).toEqual(["claude sk-1"]);
  },
);

test("a damaged file counts as empty, and is written anew", () => {
  const path = makeConfig();
  writeFileSync(join(path, "../.gateway.yaml.tool-keys"), '{"keys":[{"tool":1}]}', { mode: 0o600 });
  expect(secretsOf(path, catalogOf({ claude: "sk-1" }))).toEqual([]);
  storeToolSecret({ tool: "claude", key: "claude", secret: "sk-1" }, path);
  expect(secretsOf(path, catalogOf({ claude: "sk-1" }))).toEqual(["claude sk-1"]);
});
