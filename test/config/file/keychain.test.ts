// Tests credentials in a keychain. The last test uses the system's keychain, the others a simulated one.

import { describe, expect, spyOn, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { checkConfigText, loadWithCredentials } from "../../../src/config/file/load.ts";
import { watchConfig } from "../../../src/config/file/watch.ts";
import type { Catalog } from "../../../src/config/catalog.ts";
import { sha256Hex } from "../../../src/lib/secret.ts";
import { listKeychainNames, readKeychain, type systemKeychain } from "../../../src/config/file/keychain.ts";
import { makeTempFolder } from "../../harness/temp.ts";

const MAIN = join(import.meta.dir, "../../../src/main.ts");

const TEXT = `
ledger: { path: ledger.jsonl }
channels:
  a: { platform: messages, base_url: "https://api.anthropic.com", credential: keychain:main }
  b: { platform: messages, base_url: "https://api.anthropic.com", credential: "keychain:other" }
  c: { platform: messages, base_url: "https://api.anthropic.com", credential: "\${VALUE}" }
groups:
  all: { platform: messages, channels: [a, b, c] }
`;

function makeKeychain(get: (name: string) => Promise<string | null>): typeof systemKeychain {
  return { get, set: () => Promise.resolve(), remove: () => Promise.resolve(false) };
}

const VALUE = { VALUE: "keychain:main" };

describe("P7, P8: a credential in the keychain is read for its channel", () => {
  test("only the config file can name a credential in the keychain, and a variable's value cannot", () => {
    expect([...listKeychainNames(TEXT)]).toEqual([
      ["main", ["a"]],
      ["other", ["b"]],
    ]);
  });

  test("a credential in the keychain reaches its channel, and a variable's value that begins with `keychain:` is used as it is", async () => {
    const read = await readKeychain(
      TEXT,
      makeKeychain((name) => Promise.resolve(`sk-\${${name}}`)),
    );
    const { catalog } = checkConfigText(TEXT, "/x/gateway.yaml", { ...VALUE, ...read });
    const credentials = [...catalog.channels.values()].map(({ credential }) => credential);
    // Variables in a credential of the keychain are not expanded.
    expect(credentials).toEqual(["sk-${main}", "sk-${other}", "keychain:main"]);
    expect(catalog.groups.get("all")?.channels).toHaveLength(3);
  });

  test("if the keychain is locked or has no credential for a channel, only this channel is unavailable, and says why", async () => {
    const never = new Promise<null>(() => {});
    const keychain = makeKeychain((name) => (name === "main" ? never : Promise.resolve(null)));
    const read = await readKeychain(TEXT, keychain, 20);
    const { catalog } = checkConfigText(TEXT, "/x/gateway.yaml", { ...VALUE, ...read });
    expect([...catalog.channels.values()].map(({ lack, disabled }) => [lack, disabled])).toEqual([
      ["the keychain did not answer in 0.02 s: unlock it, and start again", true],
      [
        'the keychain has no credential "other", or stays locked: `gateway credentials set other` stores it',
        true,
      ],
      [null, false],
    ]);
    expect(catalog.groups.get("all")?.channels.map(({ name }) => name)).toEqual(["c"]);
  });

  test("on a machine without a keychain, a channel that needs one says where else to put its credential", async () => {
    const read = await readKeychain(
      TEXT,
      makeKeychain(() => Promise.reject(new Error("no D-Bus"))),
    );
    const { catalog } = checkConfigText(TEXT, "/x/gateway.yaml", { ...VALUE, ...read });
    expect(catalog.channels.get("a")?.lack).toBe(
      "no keychain can be used here (no D-Bus): put the credential into gateway.env, and write ${NAME}",
    );
  });

  test("a credential in the keychain is read for a running gateway whenever the config file changes", async () => {
    using folder = makeTempFolder();
    using asked = spyOn(Bun.secrets, "get").mockImplementation(({ name }) => Promise.resolve(`sk-${name}`));
    const path = folder.join("gateway.yaml");
    const write = (text: string) => writeFileSync(path, text, { mode: 0o600 });
    const texts = ["keychain:main", "keychain:other"].map((name) => TEXT.replace(name, "sk-plain"));
    write(TEXT.replaceAll(/keychain:(main|other)/g, "sk-plain"));
    const read: unknown[] = [];
    const onChange = ({ catalog }: { catalog: Catalog }): void =>
      void read.push([...catalog.channels.values()].map(({ credential }) => credential));
    const onProblem = (error: Error): void => void read.push(error);
    const loaded = await loadWithCredentials(path, VALUE);
    const { follow, end } = watchConfig(loaded, VALUE, { onChange, onProblem });
    for (const text of texts) {
      write(text);
      await follow(sha256Hex(text));
    }
    end();
    expect(read).toEqual([
      ["sk-plain", "sk-other", "keychain:main"],
      ["sk-main", "sk-plain", "keychain:main"],
    ]);
    expect(asked).toHaveBeenCalledTimes(2);
  });

  test("a config that names no credential in the keychain loads without asking the keychain", async () => {
    using folder = makeTempFolder();
    const path = folder.join("gateway.yaml");
    writeFileSync(path, TEXT.replaceAll(/keychain:(main|other)/g, "sk-plain"), { mode: 0o600 });
    const { catalog } = await loadWithCredentials(path, VALUE);
    expect(catalog.channels.get("a")).toMatchObject({ credential: "sk-plain", lack: null });
  });
});

/** Runs a command with an unlocked keyring of its own. */
const SESSION = `printf 'password\\n' | gnome-keyring-daemon --unlock --components=secrets >/dev/null 2>&1; exec "$@"`;
const hasKeyring = Bun.which("dbus-run-session") !== null && Bun.which("gnome-keyring-daemon") !== null;

test.skipIf(!hasKeyring)(
  "commands store, list and remove a credential in a real keyring, and never print it",
  () => {
    using folder = makeTempFolder();
    writeFileSync(folder.join("gateway.yaml"), TEXT.replace("${VALUE}", "sk-plain"), { mode: 0o600 });
    const script = `
    printf 'sk-from-stdin' | "$0" "$1" credentials set main
    "$0" "$1" credentials list --config gateway.yaml --json
    "$0" -e 'console.log(await Bun.secrets.get({ service: "gateway", name: "main" }))'
    "$0" "$1" credentials remove main; "$0" "$1" credentials remove main; echo "status $?"`;
    const { stdout, stderr } = Bun.spawnSync(
      ["dbus-run-session", "--", "sh", "-c", SESSION, "sh", "sh", "-c", script, process.execPath, MAIN],
      { cwd: folder.path, env: { PATH: process.env["PATH"], HOME: folder.path }, stdin: "ignore" },
    );
    const lines = stdout.toString().trim().split("\n");
    expect(JSON.parse(lines.slice(0, -2).join("\n"))).toEqual([
      { name: "main", channels: ["a"], stored: true },
      { name: "other", channels: ["b"], stored: false },
    ]);
    expect(lines.slice(-2)).toEqual(["sk-from-stdin", "status 1"]);
    expect(stderr.toString()).toContain('Removed "main" from the keychain');
    expect(stderr.toString()).not.toContain("sk-from-stdin");
  },
  60_000,
);
