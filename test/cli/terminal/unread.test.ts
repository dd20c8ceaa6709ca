// Output that nobody can read: a secret that is shown only once must not be lost without a message.

import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { existsSync, writeFileSync } from "node:fs";
import { loadConfig } from "../../../src/config/file/load.ts";
import { makeTempFolder, type TempFolder } from "../../harness/temp.ts";
import { OFFLINE, type Outcome, run } from "../driving.ts";
import { PROGRAM } from "../../harness/program.ts";

const CONFIG = `channels:
  a: { platform: messages, base_url: https://a.example, credential: \${UNSET_HERE} }
groups:
  claude: { platform: messages, multiplier: 1, channels: [a] }
keys:
  - { name: laptop, group: claude, secret: sk-a-secret-of-a-laptop }
`;

let folder: TempFolder;
beforeEach(() => {
  folder = makeTempFolder();
  writeFileSync(folder.join("gateway.yaml"), CONFIG, { mode: 0o600 });
});
afterEach(() => folder.remove());

const keys = () => loadConfig(folder.join("gateway.yaml"), {}, { missing: "keep" }).catalog.keys;

/** With a shell that opens stdout as `way` says. */
async function runInto(way: string, ...words: string[]): Promise<Omit<Outcome, "stdout">> {
  const child = Bun.spawn(["sh", "-c", `exec "$0" "$@" ${way}`, ...PROGRAM, ...words], {
    cwd: folder.path,
    env: {
      PATH: process.env["PATH"] ?? "",
      GATEWAY_CONFIG: folder.join("gateway.yaml"),
      ...OFFLINE,
      ANTHROPIC_API_KEY: "sk-ant-of-a-test",
    },
    stderr: "pipe",
  });
  const [stderr, status] = await Promise.all([child.stderr.text(), child.exited]);
  return { stderr, status };
}

/** The reader has left before anything is written. */
async function runUnread(...words: string[]): Promise<Omit<Outcome, "stdout">> {
  const fifo = folder.join("fifo");
  Bun.spawnSync(["mkfifo", fifo]);
  // Both ends are open for a moment: then the one that reads is not any more.
  return runInto(`3<>${fifo} 4>${fifo} 3<&- >&4`, ...words);
}

const WAYS = [
  ["a full disk", (...words: string[]) => runInto(">/dev/full", ...words), "cannot write to stdout"],
  ["a reader that has left", runUnread, ""],
] as const;

describe.skipIf(!existsSync("/dev/full")).each(WAYS)("into %s", (_, runBadly, reason) => {
  test("the error says that a key was created, and what to do", async () => {
    const words = ["keys", "add", "--name", "ci", "--group", "claude"];
    for (const flags of [[], ["--json"]]) {
      const { stderr, status } = await runBadly(...words, ...flags);
      expect(stderr).toContain(reason);
      expect(stderr).toEndWith(
        'gateway: The key "ci" was created, but the secret could not be printed: `gateway keys rotate ci` prints a new one.\n',
      );
      expect(status).toBe(1);
      expect(keys().has("ci")).toBe(true);
      await run({ folder: folder.path }, "keys", "remove", "ci", "--yes");
    }
  });

  test("the same for several keys", async () => {
    const { stderr, status } = await runBadly("keys", "add", "--name=g", "--group=claude", "--count=2");
    expect(stderr).toEndWith(
      "gateway: 2 keys were created, g-1 to g-2, but the secrets could not be printed: " +
        "`gateway keys rotate g-1` prints a new one, and so on for each key.\n",
    );
    expect(status).toBe(1);
  });

  test("the same for a rotated key", async () => {
    const { stderr, status } = await runBadly("keys", "rotate", "laptop");
    expect(stderr).toEndWith(
      'gateway: The key "laptop" has a new secret, but the secret could not be printed: `gateway keys rotate laptop` prints a new one.\n',
    );
    expect(status).toBe(1);
  });

  test("the same for a key that was created for a tool", async () => {
    const { stderr, status } = await runBadly("env", "claude", "--new");
    expect(stderr).toEndWith(
      'gateway: The key "claude" was created, but the secret could not be printed: `gateway keys rotate claude` prints a new one.\n',
    );
    expect(status).toBe(1);
  });

  test("the same for the keys of a new config", async () => {
    const { stderr, status } = await runBadly("init", "--yes", "--config", "new.yaml");
    expect(stderr).toContain(
      "new.yaml was written with the key claude, but the secret could not be printed: ",
    );
    expect(stderr).toEndWith("`gateway keys rotate claude` prints a new one.\n");
    expect(status).toBe(1);
  });
});

test.skipIf(!existsSync("/dev/full"))(
  "a failure keeps its exit status when nobody reads the output",
  async () => {
    writeFileSync(folder.join("ledger.jsonl"), '{"v":1}\n', { mode: 0o600 });
    const proof = await runUnread("ledger", "verify");
    expect(proof.stderr).toEndWith("has 2 problems.\n");
    expect(proof.status).toBe(1);
    expect(await runUnread("doctor")).toEqual({ stderr: "", status: 1 });
  },
);

test.skipIf(!existsSync("/dev/full"))("a list that nobody reads ends without an error", async () => {
  expect(await runUnread("keys", "list")).toEqual({ stderr: "", status: 0 });
});
