// What `gateway schema` prints, held against the example config, wrong configs and what the commands print.

import Ajv, { type ValidateFunction } from "ajv/dist/2020";
import { beforeAll, describe, expect, test } from "bun:test";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parse } from "yaml";
import { startDemoUpstream } from "../../../src/demo/upstream.ts";
import { CREDENTIAL, keyOf, makeConfig, startGateway } from "../../harness/gateway.ts";
import { makeTempFolder } from "../../harness/temp.ts";
import { run } from "../driving.ts";

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

describe("what commands print with --json", () => {
  const rows: ReadonlyArray<readonly [document: string, ...command: string[]]> = [
    ["keys", "keys", "list"],
    ["groups", "groups", "list", "--all"],
    ["plans", "plans", "list"],
    ["usage", "usage", "--by", "key"],
    ["env", "env", "gemini", "--key", "phone", "--secret", "sk-choose-a-long-one"],
  ];
  for (const [document, ...command] of rows) {
    test(`${command.join(" ")} fits \`gateway schema ${document}\``, async () => {
      using folder = makeTempFolder();
      const extra = "  - { name: phone, group: gemini, secret: sk-choose-a-long-one }";
      const config = EXAMPLE.replace("keys:\n", `keys:\n${extra}\n`).replace(
        "${LAPTOP_KEY:-sk-choose-a-long-one}",
        "sk-another",
      );
      writeFileSync(folder.join("gateway.yaml"), config, { mode: 0o600 });
      writeFileSync(folder.join("ledger.jsonl"), "");
      const { stdout, stderr, status } = await run({ folder: folder.path }, ...command, "--json");
      expect({ stderr, status }).toEqual({ stderr: "", status: 0 });
      const check = await compile(document);
      expect(check(JSON.parse(stdout)) ? null : check.errors).toBeNull();
    });
  }

  test("the channels, models, ledger and doctor output of a running gateway fit their schemas", async () => {
    using runtime = makeTempFolder();
    const env = { XDG_RUNTIME_DIR: runtime.path };
    const upstream = startDemoUpstream({ platform: "messages", credential: CREDENTIAL });
    using folder = makeTempFolder();
    const gateway = await startGateway({ config: makeConfig(upstream), env, folder });
    await fetch(`${gateway.url}/v1/messages`, {
      method: "POST",
      headers: { "x-api-key": keyOf("messages"), "content-type": "application/json" },
      body: JSON.stringify({
        model: "claude-haiku-4-5",
        max_tokens: 9,
        messages: [{ role: "user", content: "hi" }],
      }),
    }).then((answer) => answer.text());
    const where = { folder: gateway.folder.path, env };
    const printed: Record<string, unknown> = {};
    for (const command of ["channels", "models", "doctor"]) {
      printed[command] = JSON.parse((await run(where, command, "--json")).stdout);
    }
    await gateway.stop();
    upstream.stop();
    [printed["ledger"]] = gateway.ledger();
    for (const [document, value] of Object.entries(printed)) {
      const check = await compile(document);
      expect({ document, problems: check(value) ? null : check.errors }).toEqual({
        document,
        problems: null,
      });
    }
    expect(printed["models"]).not.toEqual([]);
  });

  test("an unknown document is an error with the nearest name", async () => {
    const { stderr, status } = await run({ folder: "/" }, "schema", "confg");
    expect(status).toBe(2);
    expect(stderr).toContain("config");
  });
});
