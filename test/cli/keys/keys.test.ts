import { describe, expect, test } from "bun:test";
import { existsSync, writeFileSync } from "node:fs";
import { sha256Hex } from "../../../src/lib/secret.ts";
import { openLedger } from "../../../src/billing/ledger/ledger.ts";
import { bill, optionsFor } from "../../billing/ledger/ledger-samples.ts";
import { passMidnight } from "../../harness/day.ts";
import { useFolder } from "../../harness/temp.ts";
import { type Outcome, run } from "../driving.ts";
import { PROGRAM } from "../../harness/program.ts";

const LAPTOP = "sk-laptop-0123456789";

const CONFIG = `# mine
channels:
  a: { platform: messages, base_url: https://a.example, credential: \${UNSET_HERE} }
  o: { platform: responses, base_url: https://o.example, credential: \${UNSET_HERE} }
groups:
  claude: { platform: messages, multiplier: 1, channels: [a], description: at cost }
  codex: { platform: responses, multiplier: 0.80, channels: [o] }
  max: { platform: messages, multiplier: 0.2, channels: [a], exclusive: true }
plans:
  gold: { groups: [max] } # not yet
keys:
  - { name: laptop, group: claude, secret: ${LAPTOP} } # by hand
  - { name: old, group: codex, secret: sk-old, expires: 2020-01-01 }
`;

const folder = useFolder(CONFIG);
const { text } = folder;

const gateway = (...args: string[]): Promise<Outcome> => run({ folder: folder.path }, ...args);
const feed = (stdin: string, ...args: string[]): Promise<Outcome> =>
  run({ folder: folder.path, stdin }, ...args);
const NEW = ["--name", "x", "--group", "codex"];
const add = (secret: string) => feed(secret, "keys", "add", ...NEW, "--secret", "-");
const keys = () => folder.catalog().keys;

describe("`keys add` creates a key from valid input only", () => {
  test("`keys add --secret -` reads the secret from stdin", async () => {
    const { status, stdout } = await add("sk-mine-12345678901\n");
    expect([status, stdout]).toEqual([0, "sk-mine-12345678901\n"]);
    expect(keys().get("x")?.secretSha256).toBe(sha256Hex("sk-mine-12345678901"));
  });

  test.each(["sk-0123456789abcde", "0123456789abcdef0123", "pk-0123456789abcdef", "SK-0123456789abcdef"])(
    "without --force, the secret %s is refused, because it is not `sk-` followed by at least 16 characters",
    async (secret) => {
      const stdin = `${secret}\n`;
      for (const words of ["add --name x --group codex", "rotate laptop"]) {
        const command = [...words.split(" "), "--secret", "-"];
        writeFileSync(folder.join("gateway.yaml"), CONFIG);
        const { status, stdout, stderr } = await feed(stdin, "keys", ...command);
        expect({ status, stdout, config: text() }).toEqual({ status: 2, stdout: "", config: CONFIG });
        expect(stderr).toContain("expected `sk-` and at least 16 more characters");
        expect(stderr).not.toContain(secret);
        expect((await feed(stdin, "keys", ...command, "--force")).status).toBe(0);
        expect(text()).toContain(sha256Hex(secret));
      }
    },
  );

  test("`keys add --expires` accepts a duration or a date", async () => {
    await gateway("keys", "add", ...NEW, "--expires", "2099-01-31");
    expect(keys().get("x")?.expires).toEqual(new Date("2099-01-31"));
    const before = Date.now();
    await gateway("keys", "add", "--name", "r", "--group", "codex", "--expires", "30d");
    const expires = keys().get("r")?.expires?.getTime() ?? 0;
    expect(expires).toBeGreaterThanOrEqual(before + 30 * 86_400_000 - 1000);
    expect(expires).toBeLessThanOrEqual(Date.now() + 30 * 86_400_000);
  });

  const refused: Array<readonly [string, number, string, readonly string[]]> = [
    ["a taken name", 1, 'gateway: There is already a key "laptop".', [...NEW, "--name", "laptop"]],
    ["a bad name", 2, '"a b" cannot be a name: a name is 1 to 64', [...NEW, "--name", "a b"]],
    ["an unknown group", 1, 'no group "codx" (did you mean "codex"?).', [...NEW, "--group", "codx"]],
    ["an unrelated group", 1, '"nope". Known groups: claude, codex, max.\n', [...NEW, "--group", "nope"]],
    ["a past date", 2, "--expires: 2020-01-01 has passed.", [...NEW, "--expires", "2020-01-01"]],
    // The first is no date, the second lies beyond the calendar, and the third has a year of five digits.
    ...["soon", "99999999d", "3650000d"].map(
      (date) => [date, 2, "--expires: expected a duration or a date", [...NEW, "--expires", date]] as const,
    ),
    ["--force without --secret", 2, "--force needs --secret", [...NEW, "--force"]],
    ["a secret argument", 2, "--secret accepts only `-`", [...NEW, "--secret", "sk-abc"]],
    ["an unknown flag", 2, "unknown option '--nmae'", ["--nmae", "x"]],
  ];
  test.each(refused)("`keys add` refuses %s with status %d", async (_, expected, sentence, args) => {
    const { status, stdout, stderr } = await gateway("keys", "add", ...args);
    expect(stderr).toContain(sentence);
    expect([status, stdout]).toEqual([expected, ""]);
    expect(text()).toBe(CONFIG);
  });

  test.each([
    ["another key's secret", LAPTOP, 1, 'The key "laptop" already has that secret'],
    ["an empty text", "\n", 2, "The secret cannot be used: a secret has only visible ASCII characters"],
    ["a text with a space", "sk-a b", 2, "without spaces"],
  ])("`keys add` refuses %s as a secret", async (_, secret, expected, sentence) => {
    const { status, stdout, stderr } = await add(secret);
    expect(stderr).toContain(sentence);
    expect([status, stdout, text()]).toEqual([expected, "", CONFIG]);
    const credential = expected === 2 ? (await feed(secret, "credentials", "set", "x")).stderr : "used: a ";
    expect(credential).toContain("used: a ");
  });
});

test.skipIf(!existsSync("/dev/full"))("a failed write to stdout is an error in one sentence", async () => {
  const child = Bun.spawn([...PROGRAM, "keys", "list"], {
    cwd: folder.path,
    env: { PATH: process.env["PATH"] ?? "", GATEWAY_CONFIG: folder.join("gateway.yaml") },
    stdout: Bun.file("/dev/full"),
    stderr: "pipe",
  });
  expect(await child.stderr.text()).toMatch(/^gateway: cannot write to stdout: .*no space left.*\n$/);
  expect(await child.exited).toBe(1);
});

describe("`keys list` and `keys show` describe keys", () => {
  test("`keys list` shows what each key has spent today and in total, from the ledger", async () => {
    await passMidnight();
    const ledger = openLedger(optionsFor(folder.join("ledger.jsonl")));
    const today = new Date().toISOString();
    for (const [id, time] of [
      ["req_old", "2024-05-01T10:00:00.000Z"],
      ["req_new", today],
    ] as const)
      await bill(ledger, id, { key: "laptop", time, charge_usd: "0.25" });
    await ledger.close();
    const [laptop] = JSON.parse((await gateway("keys", "list", "--json")).stdout);
    expect(laptop).toMatchObject({ spent_today_usd: "0.25", spent_total_usd: "0.5" });
    expect(laptop.last_used).toStartWith(today.slice(0, 10));
  });

  test("`keys show` describes one key, and suggests the nearest name for an unknown one", async () => {
    expect((await gateway("keys", "show", "laptop")).stdout).toContain("claude (messages, ×1)");
    expect(JSON.parse((await gateway("keys", "show", "laptop", "--json")).stdout)).toMatchObject({
      multiplier: "1",
    });
    const { status, stderr } = await gateway("keys", "show", "latop");
    expect([status, stderr]).toEqual([
      1,
      'gateway: There is no key "latop" (did you mean "laptop"?). Known keys: laptop, old.\n',
    ]);
  });
});

describe("a command changes all the keys that it names, or none", () => {
  test("no key is changed if one of several names is unknown", async () => {
    const { status, stderr } = await gateway("keys", "disable", "laptop", "lod");
    expect([status, text()]).toEqual([1, CONFIG]);
    expect(stderr).toContain('(did you mean "old"?)');
  });

  test("`keys rotate` needs --expires if the key has expired", async () => {
    const { status, stderr } = await gateway("keys", "rotate", "old");
    expect([status, text()]).toEqual([2, CONFIG]);
    expect(stderr).toContain("--expires is missing");
    const dated = await gateway("keys", "rotate", "old", "--expires", "2099-01-31", "--json");
    expect(JSON.parse(dated.stdout)).toMatchObject({ name: "old", expires: "2099-01-31T00:00:00Z" });
    await gateway("keys", "rotate", "old");
    expect(keys().get("old")?.expires?.toISOString()).toBe("2099-01-31T00:00:00.000Z");
    await gateway("keys", "rotate", "old", "--expires", "never");
    expect(keys().get("old")?.expires).toBeNull();
  });
});
