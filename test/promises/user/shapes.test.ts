// Tests that commands' JSON has the contract's fields. test/cli/help.test.ts tests the contract's flags.

import { beforeAll, describe, expect, onTestFinished, test } from "bun:test";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { whole } from "../world/answers.ts";
import { contract, rows } from "../world/contract.ts";
import { makeFolder, removeFolder, runIn, useWorld } from "../world/world.ts";

const world = useWorld({
  config: (built) => ({ ...built, plans: { max: { groups: ["plain"], active: true } } }),
});
const plain = world.group("plain", { key: { record: "shapes" } });

test("P26: every command accepts --config, and those that read the ledger accept --ledger", async () => {
  const other = world.path("other.yaml");
  writeFileSync(other, world.config.replaceAll('"plain"', '"elsewhere"'), { mode: 0o600 });
  for (const args of [["keys", "list"], ["groups", "list"], ["plans", "list"], ["doctor"]]) {
    const { stdout } = await world.run(...args, "--config", other, "--json");
    expect([args.join(" "), /elsewhere|other\.yaml/.test(stdout)]).toEqual([args.join(" "), true]);
  }
  const empty = world.path("empty.jsonl");
  writeFileSync(empty, "", { mode: 0o600 });
  const reading =
    "usage,sessions,cache,ledger verify,ledger anchor,context servers,prices check,recordings list";
  for (const line of [...reading.split(","), "ledger reprice --since 7d --dry-run"]) {
    const { status, stdout } = await world.run(...line.split(" "), "--ledger", empty, "--json");
    const isOther = /plain|test-model|mystery|shapes/.test(stdout.replaceAll(empty, ""));
    expect([line, status, isOther]).toEqual([line, 0, false]);
  }
  for (const line of ["ledger show last", "sessions show last", "context last", "report last"]) {
    const { status } = await world.run(...line.split(" "), "--ledger", empty);
    expect([line, status]).toEqual([line, 1]);
  }
  for (const [args, shown] of [
    [["keys", "list"], '"last_used":null,"spent_today_usd":"0"'],
    [["keys", "show", "plain"], '"last_used":null,"spent_today_usd":"0"'],
    [["channels"], '"state":"unknown"'],
    [["doctor"], empty],
  ] as const) {
    const { stdout } = await world.run(...args, "--ledger", empty, "--json");
    expect(stdout).toContain(shown);
  }
  expect(existsSync(`${empty}.index`)).toBe(false);
});

const SUMS = /(SUMS: .*)/.exec(contract)?.[1] ?? "";

/** Lists the fields in a cell of the contract's table, except those that may be absent. */
function listFields(cell: string): string[] {
  const text = cell.replaceAll("SUMS", SUMS.replaceAll("`", ""));
  return [...text.matchAll(/"(\w+)"(\??)(?=[:,}\]?…`.\s])/g)].flatMap(([, name = "", mark]) =>
    mark === "?" ? [] : [name],
  );
}

/** Each row has a command of the contract's table, and a command line that prints the command's document. */
const DOCUMENTS: readonly (readonly [string, string])[] = [
  ["run", "run --list"],
  ["env", "env anthropic --secret KEY"],
  ["keys add", "keys add --name new --group plain --expires 30d"],
  ["keys list", "keys list"],
  ["keys show", "keys show plain"],
  ["keys rotate", "keys rotate new"],
  ["channels disable", "channels disable plain-main"],
  ["channels enable", "channels enable plain-main"],
  ["channels probe", "channels probe plain-main"],
  ["groups list", "groups list --all"],
  ["plans list", "plans list"],
  ["channels", "channels"],
  ["channels add", "channels add UPSTREAM --name added --platform messages --credential - --no-check"],
  ["models", "models --group plain"],
  ["usage", "usage today --by model"],
  ["usage --as", "usage today --as claude-haiku-4-5"],
  ["usage --history", "usage --history --both"],
  ["sessions", "sessions"],
  ["sessions show", "sessions show last"],
  ["cache", "cache today"],
  ["context", "context last"],
  ["context servers", "context servers today"],
  ["top", "top"],
  ["prices show", "prices show claude-haiku-4-5"],
  ["prices check", "prices check"],
  ["ledger verify", "ledger verify"],
  ["ledger verify", "ledger verify --ledger broken.jsonl"],
  ["ledger anchor", "ledger anchor"],
  ["ledger accept", "ledger accept"],
  ["ledger reprice", "ledger reprice --since 7d --dry-run"],
  ["ledger show", "ledger show last"],
  ["recordings list", "recordings list"],
  ["doctor", "doctor"],
  ["credentials list", "credentials list"],
  ["service status", "service status"],
];

/** Members that a command's JSON does not have in this world. */
const ABSENT_HERE: Readonly<Record<string, readonly string[]>> = {
  // `unchecked` comes with --since.
  "ledger verify": ["file", "line", "id", "problem", "advice", "unchecked"],
  "ledger verify --ledger broken.jsonl": ["unchecked"],
};

beforeAll(async () => {
  const body = {
    system: [{ type: "text", text: "You are a test", cache_control: { type: "ephemeral" } }],
    tools: [{ name: "mcp__server__run", description: "runs", input_schema: { type: "object" } }],
  };
  const fields = {
    "x-claude-code-session-id": "session-of-shapes",
    "user-agent": "claude-cli/2.1.332 (external, cli)",
  };
  const usage = { cache_creation_input_tokens: 4000 };
  const limit = "anthropic-ratelimit-requests";
  const rates = {
    [`${limit}-limit`]: "50",
    [`${limit}-remaining`]: "49",
    [`${limit}-reset`]: "2030-01-01T00:00:00Z",
  };
  const answer = { body: whole("messages", { usage }), fields: rates };
  plain.channel().next(answer, answer);
  await world.line(await plain.ask("messages", body, fields));
  // A second request misses the cache of the first.
  const other = [{ type: "text", text: "You are another test", cache_control: { type: "ephemeral" } }];
  await world.line(await plain.ask("messages", { ...body, system: other }, fields));
  await world.line(await plain.ask("messages", { model: "mystery-9" }, fields));
  // Now a price changes, and a copy of the ledger gets a wrong line.
  await world.run("prices", "set", "test-model", "input=9");
  const lines = readFileSync(world.path("ledger.jsonl"), "utf8");
  writeFileSync(world.path("broken.jsonl"), lines.replace('"status":200', '"status":201'), { mode: 0o600 });
});

describe("P27: with --json, a command prints one JSON document with the contract's fields", () => {
  test.each(DOCUMENTS)("the JSON of %s has the contract's fields", async (name, line) => {
    const words = line
      .replace("KEY", plain.key)
      .replace("UPSTREAM", `${plain.channel().url}/added`)
      .split(" ");
    const { stdout, stderr } = await world.runWith({ stdin: "cred-of-added-0123" }, ...words, "--json");
    expect({ stderr, stdout: stdout.slice(0, 1) }).toMatchObject({ stdout: expect.stringMatching(/[[{]/) });
    const document = JSON.parse(stdout);
    const text = JSON.stringify(document);
    const row = rows.find(({ command, json }) => command === name && json.includes('"'));
    const found = row === undefined ? [] : listFields(row.json);
    const absent = ABSENT_HERE[line] ?? [];
    const isEmpty = Array.isArray(document) && document.length === 0;
    const missing = found.filter((field) => !text.includes(`"${field}":`) && !absent.includes(field));
    expect({ missing: isEmpty ? [] : missing }).toEqual({ missing: [] });
  });

  test("the JSON of init and import has the contract's fields", async () => {
    const folder = makeFolder();
    onTestFinished(() => removeFolder(folder));
    const env = { ANTHROPIC_API_KEY: "sk-ant-invented-0123456789" };
    const { stdout } = await runIn(folder, ["init", "--yes", "--json"], { env });
    const document = JSON.parse(stdout);
    expect(Object.keys(document)).toEqual(expect.arrayContaining(["config", "keys"]));
    expect(Object.keys(document.keys[0])).toEqual(
      expect.arrayContaining(["name", "group", "platform", "secret"]),
    );
    const own = {
      name: "own",
      api_base_url: "http://127.0.0.1:1/v1/messages",
      api_key: "sk-own-key-0123",
      models: ["m"],
    };
    writeFileSync(join(folder, "theirs.json"), JSON.stringify({ Providers: [own] }));
    const place = ["--config", join(folder, "imported.yaml"), "--json"];
    const imported = await runIn(folder, ["import", "ccr", "theirs.json", ...place]);
    const fields = ["config", "channels", "groups", "keys", "no_counterpart"];
    expect(Object.keys(JSON.parse(imported.stdout))).toEqual(expect.arrayContaining(fields));
  });
});
