// Output that nobody can read: a secret that is shown only once must not be lost without a message.

import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { existsSync, writeFileSync } from "node:fs";
import { loadConfig } from "../../../src/config/file/load.ts";
import { makeTempFolder, type TempFolder } from "../../harness/temp.ts";
import { OFFLINE, type Outcome } from "../driving.ts";
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
  return runInto(`3<>'${fifo}' 4>'${fifo}' 3<&- >&4`, ...words);
}

const ADD = ["keys", "add", "--name", "ci", "--group", "claude"];
const CASES: ReadonlyArray<readonly [what: string, words: string[], done: string, first: string]> = [
  ["a new key", ADD, 'The key "ci" was created', "ci"],
  ["a new key as JSON", [...ADD, "--json"], 'The key "ci" was created', "ci"],
  ["a rotated key", ["keys", "rotate", "laptop"], 'The key "laptop" has a new secret', "laptop"],
  ["a tool's new key", ["env", "claude", "--new"], 'The key "claude" was created', "claude"],
  [
    "a new config",
    ["init", "--yes", "--config", "new.yaml"],
    "new.yaml was written with the key claude",
    "claude",
  ],
];
const [NEW_KEY] = CASES;

async function expectAdvice(
  run: typeof runInto,
  way: string,
  [, words, done, first]: (typeof CASES)[number],
) {
  const { stderr, status } = await run(way, ...words);
  expect(stderr).toContain(done);
  expect(stderr).toMatch(/, but the secrets? could not be printed: /);
  expect(stderr).toContain(`\`gateway keys rotate ${first}\` prints a new one`);
  expect(status).toBe(1);
  return stderr;
}

describe.skipIf(!existsSync("/dev/full"))("a secret that cannot be printed", () => {
  test.each(CASES)(
    "the secret of %s cannot be printed: the error says what has happened and what to do",
    async (what, words, done, first) => {
      expect(await expectAdvice(runInto, ">/dev/full", [what, words, done, first])).toContain(
        "cannot write to stdout",
      );
    },
  );

  test("a secret whose reader has left is an error too, and its key exists", async () => {
    await expectAdvice((_, ...words) => runUnread(...words), "", NEW_KEY ?? ["", [], "", ""]);
    expect(keys().has("ci")).toBe(true);
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
