import { expect, test } from "bun:test";
import { chmodSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { loadConfig } from "../../../src/config/file/load.ts";
import { sha256Hex } from "../../../src/lib/secret.ts";
import { run, runProcess } from "../../cli/driving.ts";
import { expectMode, makeTempFolder } from "../../harness/temp.ts";

const BEFORE = `# the team's gateway  (do not reformat!)
channels:
    a:   { platform: messages,   base_url: "https://a.example/v1", credential: '\${A}' }  # odd spacing, kept

groups: { g: { platform: messages, channels: [ a ], multiplier: 1.50 } }

keys:   # everybody
    # the first
    - { name: first,   group: g, secret: sk-first }   # by hand
    # after the last

# trailing words
prices: { m: { input: "3.00" } }   # no newline at the end`;

test("P20: fifty processes that add keys at once lose no key and change no other byte", async () => {
  using folder = makeTempFolder();
  const path = folder.join("gateway.yaml");
  writeFileSync(path, BEFORE, { mode: 0o600 });
  const names = Array.from({ length: 50 }, (_, index) => `script-${index}`);
  const outcomes = await Promise.all(
    names.map((name) => runProcess({ folder: folder.path }, "keys", "add", "--name", name, "--group", "g")),
  );
  for (const { status, stderr } of outcomes) expect(status, stderr).toBe(0);
  const { catalog } = loadConfig(path, {}, { missing: "keep" });
  expect([...catalog.keys.keys()].sort()).toEqual(["first", ...names].sort());
  for (const [index, { stdout }] of outcomes.entries()) {
    expect(catalog.keysBySha256.get(sha256Hex(stdout.trim()))?.name).toBe(`script-${index}`);
  }
  const lines = readFileSync(path, "utf8").split("\n");
  const others = lines.filter(
    (line) =>
      !/^ {4}- \{ name: script-\d+, group: g, secret_sha256: [0-9a-f]{64}, created: \S+ \}$/.test(line),
  );
  expect(others.join("\n")).toBe(BEFORE);
  expectMode(path, 0o600);
  expect(readdirSync(folder.path).sort()).toEqual([".gateway.yaml.lock", "gateway.yaml"]);
});

test("the unfinished file of a killed command, which may hold secrets, is removed", async () => {
  using folder = makeTempFolder();
  writeFileSync(folder.join("gateway.yaml"), BEFORE, { mode: 0o600 });
  const [draft, other] = [".gateway.yaml.4711.0badcafe.tmp", ".gateway.yaml.mine.tmp"];
  for (const name of [draft, other]) writeFileSync(folder.join(name), BEFORE, { mode: 0o600 });
  const { status } = await run({ folder: folder.path }, "keys", "disable", "first");
  expect(status).toBe(0);
  expect(readdirSync(folder.path).sort()).toEqual([".gateway.yaml.lock", other, "gateway.yaml"].sort());
});

test.skipIf(process.platform === "win32")(
  "a link to the config stays a link, and the config keeps its mode",
  async () => {
    using folder = makeTempFolder();
    mkdirSync(folder.join("dotfiles"));
    const real = folder.join("dotfiles", "mine.yaml");
    writeFileSync(real, BEFORE);
    chmodSync(real, 0o640);
    symlinkSync("dotfiles/mine.yaml", folder.join("gateway.yaml"));
    const { status } = await run({ folder: folder.path }, "keys", "disable", "first");
    expect(status).toBe(0);
    expect(readFileSync(real, "utf8")).toBe(
      BEFORE.replace("secret: sk-first }", "secret: sk-first, disabled: true }"),
    );
    expectMode(real, 0o640);
    expect(readFileSync(folder.join("gateway.yaml"), "utf8")).toBe(readFileSync(real, "utf8"));
  },
);

test("a lock whose process died does not hold up a command", async () => {
  using folder = makeTempFolder();
  writeFileSync(folder.join("gateway.yaml"), BEFORE, { mode: 0o600 });
  const lock = Bun.fileURLToPath(new URL("../../../src/lib/files/file-lock.ts", import.meta.url));
  const code = `const { takeLock } = await import(${JSON.stringify(lock)});
    takeLock(${JSON.stringify(folder.join(".gateway.yaml.lock"))}); process.kill(process.pid, "SIGKILL");`;
  const child = Bun.spawn([process.execPath, "-e", code], { stdout: "ignore", stderr: "ignore" });
  expect(await child.exited).not.toBe(0);
  const { status } = await run({ folder: folder.path }, "keys", "disable", "first");
  expect(status).toBe(0);
});

test("a config that already has a mistake is not written to", async () => {
  using folder = makeTempFolder();
  const bad = BEFORE.replace("channels: [ a ]", "channels: [ b ]");
  writeFileSync(folder.join("gateway.yaml"), bad);
  const { status, stderr } = await run({ folder: folder.path }, "keys", "add", "--name", "x", "--group", "g");
  expect(status).toBe(2);
  expect(stderr).toContain(
    'gateway.yaml:5:48: groups.g.channels[0]: there is no channel "b" (did you mean "a"?)',
  );
  expect(readFileSync(folder.join("gateway.yaml"), "utf8")).toBe(bad);
});
