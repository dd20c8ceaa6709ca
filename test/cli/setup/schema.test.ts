// What `gateway schema` prints, held against the example config and wrong configs; and the shape of what each command prints
// with --json.

import Ajv, { type ValidateFunction } from "ajv/dist/2020";
import { appendNotes, nameFile, nameFolder, openKey } from "../../../src/billing/report/context/file.ts";
import { getField } from "../../../src/lib/json/json.ts";
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parse } from "yaml";
import { findProvider } from "@pydantic/genai-prices";
import { KNOWN_PROVIDERS } from "../../../src/billing/prices/sellers.ts";
import type { CommandRow } from "../../../src/cli/terminal/command.ts";
import { GATEWAY } from "../../../src/commands/commands.ts";
import { nameRecordings, RecordingWriter } from "../../../src/recording/store.ts";
import { startDemoUpstream } from "../../harness/upstreams/demo-upstream.ts";
import { type ChildGateway, CREDENTIAL, keyOf, makeConfig, startGateway } from "../../harness/gateway.ts";
import { makeTempFolder } from "../../harness/temp.ts";
import { run } from "../driving.ts";
import { SHAPES } from "../shapes/shapes.ts";

const EXAMPLE = readFileSync(join(import.meta.dir, "../../../config.example.yaml"), "utf8");

async function compile(document: string) {
  const { stdout, status } = await run({ folder: "/" }, "schema", document);
  expect(status).toBe(0);
  return new Ajv({ strict: false, validateFormats: false }).compile(JSON.parse(stdout));
}

/** As an editor reads it, plain YAML, with one place changed. */
function edit(from: string, to: string): unknown {
  expect(EXAMPLE).toContain(from);
  return parse(EXAMPLE.replace(from, to));
}

describe("the config's schema", () => {
  let check: ValidateFunction;
  beforeAll(async () => {
    check = await compile("config");
  });

  test("accepts the example config, with YAML numbers and booleans", () => {
    expect(check(parse(EXAMPLE)) ? null : check.errors).toBeNull();
  });

  const fine: ReadonlyArray<readonly [what: string, from: string, to: string]> = [
    ["a port from the environment", "port: 4141", 'port: "${PORT:-4141}"'],
    ["a platform from the environment", "platform: messages", 'platform: "${PLATFORM}"'],
    ["a multiplier in quotes", "multiplier: 0.8", 'multiplier: "0.8"'],
    ["a multiplier from the environment", "multiplier: 0.8", 'multiplier: "${MULTIPLIER}"'],
    ["a section without anything in it", "  drain: 0s", ""],
  ];
  for (const [what, from, to] of fine) {
    test(`accepts ${what}`, () => expect(check(edit(from, to)) ? null : check.errors).toBeNull());
  }

  test("accepts an empty object", () => expect(check({})).toBe(true));

  const mistakes: ReadonlyArray<readonly [what: string, from: string, to: string]> = [
    ["an unknown setting", "relay_prefix:", "relay_prefx:"],
    ["an unknown setting of a channel", "    weight: 1", "    wieght: 1"],
    ["a platform that there is not", "platform: messages", "platform: mesages"],
    ["a duration without a unit", "total: 600s", "total: 600"],
    ["a port in words", "port: 4141", "port: high"],
    ["a negative multiplier", "multiplier: 0.8", "multiplier: -0.8"],
    ["a key without a secret", "    secret_sha256:", "    # secret_sha256:"],
    ["a key with two secrets", "    secret_sha256:", "    secret: sk-one\n    secret_sha256:"],
    ["a channel without an address", "    base_url:", "    # base_url:"],
  ];
  for (const [what, from, to] of mistakes) {
    test(`refuses ${what}`, () => expect(check(edit(from, to))).toBe(false));
  }

  test("describes every setting as the example does", async () => {
    const { stdout } = await run({ folder: "/" }, "schema", "config");
    const { properties } = JSON.parse(stdout);
    expect(properties.relay_prefix.description).toStartWith("The path under which groups of the relay");
    const channel = properties.channels.additionalProperties;
    expect(channel.properties.priority.description).toContain("Equal priorities share by weight");
    expect(channel.properties.probe.description).toContain("Ask this often");
    expect(properties.keys.items.properties.limits.description).toBe("Of this key alone.");
    // Of one channel, and of the settings above.
    expect(channel.description).toBeUndefined();
    expect(channel.properties.weight.description).toBeUndefined();
    expect(properties.keys.items.properties.name.description).toBeUndefined();
  });
});

/** Every command that prints JSON, in an order in which each finds what it needs. */
const CALLS: ReadonlyArray<readonly [shape: keyof typeof SHAPES, ...command: string[]]> = [
  ["keys-add", "keys", "add", "--name", "guest", "--group", "messages", "--expires", "30d"],
  ["keys-rotate", "keys", "rotate", "guest"],
  ["keys-show", "keys", "show", "guest"],
  ["keys", "keys", "list"],
  ["groups", "groups", "list", "--all"],
  ["plans", "plans", "list"],
  ["channels", "channels"],
  ["channel", "channels", "disable", "content"],
  ["channel", "channels", "enable", "content"],
  ["channel", "channels", "probe", "messages"],
  ["channels-add", "channels", "add", "ollama", "--no-check"],
  ["models", "models", "--group", "messages"],
  ["prices-show", "prices", "show", "deepseek-chat"],
  ["prices-check", "prices", "check"],
  ["prices-diff", "prices", "diff", "--all", "--from", "data.json"],
  ["prices-diff", "prices", "update", "--yes", "--from", "data.json"],
  ["usage", "usage", "--by", "key,model"],
  ["usage-as", "usage", "--as", "claude-opus-4-8"],
  ["usage-history", "usage", "--history", "--both", "--by", "tool,session"],
  ["sessions", "sessions"],
  ["sessions-show", "sessions", "show", "last", "--turns"],
  ["cache", "cache"],
  ["context", "context", "last"],
  ["context-servers", "context", "servers"],
  ["recordings", "recordings", "list"],
  ["recordings-show", "recordings", "show", "seen"],
  ["ledger-verify", "ledger", "verify"],
  ["ledger-accept", "ledger", "accept"],
  ["ledger-anchor", "ledger", "anchor"],
  ["ledger-show", "ledger", "show", "last"],
  ["ledger-reprice", "ledger", "reprice", "--since", "1d", "--dry-run"],
  ["top", "top"],
  ["env", "env", "gemini", "--key", "content", "--secret", keyOf("content")],
  ["run-list", "run", "--list"],
  ["doctor", "doctor"],
  ["service-status", "service", "status"],
  ["credentials", "credentials", "list", "--config", "keychain.yaml"],
  ["init", "init", "--yes", "--config", "new/gateway.yaml"],
  ["import", "import", "litellm", "litellm.yaml", "--config", "imported/gateway.yaml"],
];

/** The commands with `--json`. */
function listJson({ flags = [], commands = {} }: CommandRow, words: readonly string[] = []): string[] {
  const own = flags.some(([form]) => form === "--json") ? [words.join(" ")] : [];
  return [...own, ...Object.entries(commands).flatMap(([name, row]) => listJson(row, [...words, name]))];
}

test("the call of every command with --json is checked against its shape", () => {
  const named = CALLS.map(([, ...words]) => {
    const [first = "", second = ""] = words;
    const hasSecond = GATEWAY.commands?.[first]?.commands?.[second] !== undefined;
    return hasSecond ? `${first} ${second}` : first;
  });
  expect([...new Set(named)].toSorted()).toEqual(listJson(GATEWAY).toSorted());
});

function noteRecording(gateway: ChildGateway): void {
  const root = nameRecordings(gateway.folder.join("ledger.jsonl"));
  const head = { method: "POST", target: "/v1/messages", fields: [] };
  const answer = { status: 200, fields: [], chunks: [], end: "whole" } as const;
  const [id, time] = ["req_1", "2026-11-23T10:00:00.000Z"];
  const line = {
    v: 1,
    id,
    time,
    key: "k",
    request: head,
    response: answer,
    duration_ms: 1,
    line: null,
  } as const;
  new RecordingWriter(root, "seen", 1e6).write({
    line,
    request: new Uint8Array(1),
    response: new Uint8Array(1),
  });
}

/** The gateway itself writes them within a second. */
function noteContext(gateway: ChildGateway): void {
  const { id, client } = gateway.ledger().at(-1) ?? expect.unreachable();
  const session = String(getField(client, "session"));
  const folder = nameFolder(gateway.folder.join("ledger.jsonl"));
  openKey(folder);
  const parts = [
    ["tool", "mcp__git__log", 2, "a"],
    ["result", "Read", 2, "b"],
  ];
  appendNotes(nameFile(folder, session), [`${JSON.stringify({ id, parts, sent: [[0, 2]] })}\n`]);
}

describe("what a command prints with --json, beside a running gateway,", () => {
  const home = makeTempFolder();
  const env = {
    HOME: home.path,
    XDG_RUNTIME_DIR: home.path,
    ANTHROPIC_API_KEY: CREDENTIAL,
    NO_PROXY: "127.0.0.1",
  };
  let gateway: ChildGateway;
  let upstream: ReturnType<typeof startDemoUpstream>;
  beforeAll(async () => {
    upstream = startDemoUpstream({ platform: "messages", credential: CREDENTIAL });
    const plans = { max: { groups: ["relay"] } };
    gateway = await startGateway({ config: makeConfig(upstream, { plans }), env });
    for (const model of ["claude-haiku-4-5", "claude-haiku-4-5", "claude-without-a-price"])
      await fetch(`${gateway.url}/v1/messages`, {
        method: "POST",
        headers: { "x-api-key": keyOf("messages"), "content-type": "application/json" },
        body: JSON.stringify({ model, max_tokens: 9, messages: [{ role: "user", content: "hi" }] }),
      }).then((answer) => answer.text());
    await gateway.recorded(3);
    noteContext(gateway);
    noteRecording(gateway);
    const published = KNOWN_PROVIDERS.flatMap((id) => findProvider({ providerId: id }) ?? []);
    writeFileSync(gateway.folder.join("data.json"), JSON.stringify(published));
    const models = [{ model_name: "m", litellm_params: { model: "anthropic/m", api_key: "x", rpm: 1 } }];
    writeFileSync(gateway.folder.join("keychain.yaml"), "channels: { a: { credential: keychain:a } }\n");
    writeFileSync(
      gateway.folder.join("litellm.yaml"),
      JSON.stringify({ model_list: models, general_settings: { master_key: "sk-master" } }),
    );
  });
  afterAll(async () => {
    await gateway.stop();
    upstream.stop();
    home.remove();
  });

  for (const [shape, ...command] of CALLS) {
    test(`${command.join(" ")}: it has the shape ${shape}`, async () => {
      const { stdout, stderr } = await run({ folder: gateway.folder.path, env }, ...command, "--json");
      expect(stdout === "" ? stderr : "").toBe("");
      const printed: unknown = JSON.parse(stdout);
      expect(printed).not.toEqual([]);
      expect(SHAPES[shape].safeParse(printed).error).toBeUndefined();
    });
  }
});

test("an unknown document is an error with the nearest name", async () => {
  const { stderr, status } = await run({ folder: "/" }, "schema", "confg");
  expect(status).toBe(2);
  expect(stderr).toContain("config");
});
