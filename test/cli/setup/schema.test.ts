// Compares the output of `gateway schema` with the example config and with wrong configs.

import Ajv, { type ValidateFunction } from "ajv/dist/2020";
import { beforeAll, describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { parse } from "yaml";
import { run } from "../driving.ts";

const EXAMPLE = readFileSync(join(import.meta.dir, "../../../config.example.yaml"), "utf8");

async function compile(document: string) {
  const { stdout, status } = await run({ folder: "/" }, "schema", document);
  expect(status).toBe(0);
  return new Ajv({ strict: false, validateFormats: false }).compile(JSON.parse(stdout));
}

/** Returns the example as an editor reads it, as plain YAML, with one place changed. */
function edit(from: string, to: string): unknown {
  expect(EXAMPLE).toContain(from);
  return parse(EXAMPLE.replace(from, to));
}

describe("the config's schema accepts right configs and refuses wrong ones", () => {
  let check: ValidateFunction;
  beforeAll(async () => {
    check = await compile("config");
  });

  test("the config's schema accepts the example config, with YAML numbers and booleans", () => {
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
    test(`the config's schema accepts ${what}`, () =>
      expect(check(edit(from, to)) ? null : check.errors).toBeNull());
  }

  test("the config's schema accepts an empty object", () => expect(check({})).toBe(true));

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
    test(`the config's schema refuses ${what}`, () => expect(check(edit(from, to))).toBe(false));
  }

  test("the config's schema describes the settings with the comments of the example config", async () => {
    const { stdout } = await run({ folder: "/" }, "schema", "config");
    const { properties } = JSON.parse(stdout);
    expect(properties.relay_prefix.description).toStartWith("The path under which groups of the relay");
    const channel = properties.channels.additionalProperties;
    expect(channel.properties.priority.description).toContain("Equal priorities share by weight");
    expect(channel.properties.probe.description).toContain("checks this often");
    expect(properties.keys.items.properties.limits.description).toBe("The limits of this key alone.");
    // A comment about one channel, or about the settings above the comment, describes no setting.
    expect(channel.description).toBeUndefined();
    expect(channel.properties.weight.description).toBeUndefined();
    expect(properties.keys.items.properties.name.description).toBeUndefined();
  });
});

test("`gateway schema` refuses an unknown document, and suggests the nearest name", async () => {
  const { stderr, status } = await run({ folder: "/" }, "schema", "confg");
  expect(status).toBe(2);
  expect(stderr).toContain("config");
});
