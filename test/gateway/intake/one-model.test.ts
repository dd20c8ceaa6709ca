// Bodies in which other parsers find another model than the gateway does.

import { describe, expect, test } from "bun:test";
import { checkConfigText } from "../../../src/config/file/load.ts";
import { readNames } from "../../../src/gateway/intake/body.ts";
import { MESSAGES_LAYOUT } from "../../../src/dialects/prompt/layouts.ts";
import { scanBody } from "../../harness/prompt.ts";
import { dependsOnModel, requireOneModel } from "../../../src/gateway/intake/one-model.ts";

type Section = Record<string, unknown>;

function keyWith(channel: Section, key: Section, group: Section = {}) {
  const config = {
    channels: { a: { platform: "messages", base_url: "http://127.0.0.1:9", credential: "xxxx", ...channel } },
    groups: { g: { platform: "messages", channels: ["a"], ...group } },
    keys: [{ name: "k", group: "g", secret: "sk-test", ...key }],
  };
  const { catalog } = checkConfigText(JSON.stringify(config), "/nonexistent/gateway.yaml", {});
  return catalog.keys.get("k")!;
}

const FREE = keyWith({}, {});
const LISTED = keyWith({ models: ["m"] }, {});
const ALIASED = keyWith({ aliases: { fast: "m" } }, {});
const LIMITED = keyWith({}, { limits: { usd_per_day: "5" } });
const GROUP_LIMITED = keyWith({}, {}, { limits: { usd_per_day: "5" } });

function check(text: string, key = LISTED): void {
  const bytes = Buffer.from(text);
  const { scan } = scanBody(bytes, MESSAGES_LAYOUT) ?? {};
  const { model } = readNames(bytes, scan ?? null);
  if (dependsOnModel(key)) requireOneModel({ bytes, scan: scan! }, model);
}

const AMBIGUOUS: readonly (readonly [name: string, body: string])[] = [
  ["another case", '{"model":"m","Model":"x"}'],
  ["another case first", '{"MODEL":"x","model":"m"}'],
  ["an escaped name", '{"model":"m","\\u004dodel":"x"}'],
  ["full-width letters", '{"model":"m","ｍodel":"x"}'],
  ["a NUL in the name", '{"model":"m","model\\u0000":"x"}'],
  ["comments that hide a member", '{"model":"m","a":{/*"*/},"model":"x","b":{/*"*/}}'],
  ["a line comment", '{"model":"m","a":[//"\n1],"model":"x","b":[//"\n1]}'],
  ["single quotes", `{"model":"m","a":['"'],"model":"x","b":['"']}`],
];

describe("a body in which another parser may find another model", () => {
  test.each(AMBIGUOUS)("is refused where a `models` list depends on it: %s", (_name, body) => {
    expect(() => check(body)).toThrow("the model must be unambiguous");
  });

  test.each(AMBIGUOUS)("is refused where a USD limit depends on it: %s", (_name, body) => {
    expect(() => check(body, LIMITED)).toThrow("the model must be unambiguous");
    expect(() => check(body, GROUP_LIMITED)).toThrow("the model must be unambiguous");
  });

  test.each(AMBIGUOUS)("is refused where an alias depends on it: %s", (_name, body) => {
    expect(() => check(body, ALIASED)).toThrow("the model must be unambiguous");
  });

  test.each(AMBIGUOUS)("passes where nothing depends on it: %s", (_name, body) => {
    expect(() => check(body, FREE)).not.toThrow();
  });
});

test.each([
  '{"model":"m"}',
  '\ufeff{"model":"m","stream":true,"n":-1.5e+3,"x":[null,false]}',
  '{"model":"m","metadata":{"Model":"x","text":"/* \\" // \\\\"}}',
  '{"model":"m","messages":[{"content":"it\'s # a / \\"Model\\""}],"Models":1,"model_x":2}',
])("an ordinary body passes: %s", (body) => {
  expect(() => check(body)).not.toThrow();
});

describe("where the path names the model", () => {
  const check = (text: string): void => requireOneModel(scanBody(Buffer.from(text), MESSAGES_LAYOUT)!, "m");

  test.each(['{"contents":[]}', '{"model":"m"}', '{"model":"models/m"}'])("%s passes", (body) => {
    expect(() => check(body)).not.toThrow();
  });

  test.each(['{"model":"x"}', '{"Model":"m"}', '{"model":"m","Model":"x"}'])("%s is refused", (body) => {
    expect(() => check(body)).toThrow("unambiguous");
  });
});

test("the check takes time in proportion to the size", () => {
  for (const unit of ['"a":"\\\\",', '"a":[],', '"\\"":1,', "{[", '\\\\\\\\"']) {
    const time = (count: number): number => {
      const start = process.cpuUsage();
      try {
        check(`{"model":"m",${unit.repeat(count)}"z":1}`);
      } catch {
        // Some of these are refused, and others are not JSON.
      }
      const { user, system } = process.cpuUsage(start);
      return user + system;
    };
    time(5_000);
    const small = Math.min(time(10_000), time(10_000), time(10_000));
    const large = Math.min(time(40_000), time(40_000), time(40_000));
    expect([unit, large < 8 * small + 20_000]).toEqual([unit, true]);
  }
});
