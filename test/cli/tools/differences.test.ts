// What the gateway changes for a tool: the list of wanted differences, and what a user's own settings cost.

import { describe, expect, test } from "bun:test";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { findLosses } from "../../../src/cli/doctor/shell.ts";
import { compareRequests, DIFFERENCE_TABLE, formatDifferences } from "../../e2e/real-clis/compare.ts";
import { DIFFERENCES } from "../../e2e/real-clis/differences.ts";
import type { Arrived } from "../../harness/upstreams/vendor.ts";
import { makeTempFolder } from "../../harness/temp.ts";

test("docs/tools.md has the differences that the comparison of the real tools allows", () => {
  const text = readFileSync(join(import.meta.dir, "../../../docs/tools.md"), "utf8");
  expect(DIFFERENCE_TABLE.exec(text)?.[0]).toBe(formatDifferences(DIFFERENCES));
});

describe("what a user's own settings cost a tool", () => {
  const find = (files: Readonly<Record<string, string>>, env: Record<string, string> = {}) => {
    using folder = makeTempFolder();
    for (const [name, text] of Object.entries(files)) {
      mkdirSync(dirname(folder.join(name)), { recursive: true });
      writeFileSync(folder.join(name), text);
    }
    return findLosses({ HOME: folder.path, ...env }).map(({ check }) => check.replace("tool ", ""));
  };
  const provider = (name: string) => ({
    ".codex/config.toml": `model_provider = "x"\n[model_providers.x]\nname = "${name}"\nbase_url = "http://h/v1"\n`,
  });

  test.each([
    ["DISABLE_PROMPT_CACHING", "1", "0"],
    ["ENABLE_TOOL_SEARCH", "false", "auto:5"],
    ["CLAUDE_CODE_DISABLE_EXPERIMENTAL_BETAS", "true", ""],
  ])("%s of Claude Code, if it is %p and not %p", (name, costly, free) => {
    expect(find({}, { [name]: costly })).toEqual(["claude"]);
    expect(find({}, { [name]: free })).toEqual([]);
    const inFile = { ".claude/settings.json": JSON.stringify({ env: { [name]: costly } }) };
    expect(find(inFile, { [name]: free })).toEqual(["claude"]);
  });

  test("a provider of Codex that has another name than OpenAI", () => {
    expect(find(provider("gateway"))).toEqual(["codex"]);
    expect(find(provider("OpenAI"))).toEqual([]);
    expect(find({ ".codex/config.toml": 'openai_base_url = "http://h/v1"\n' })).toEqual([]);
    expect(find({ ".codex/config.toml": "not = = toml" })).toEqual([]);
  });
});

describe("the comparison of requests", () => {
  const body = (more: object = {}) => ({
    model: "m",
    system: [{ text: "s", cache_control: { type: "ephemeral", scope: "global" } }],
    tools: [{ name: "a" }, { name: "b" }],
    metadata: { session: crypto.randomUUID() },
    ...more,
  });
  const arrive = (content: object, more: Partial<Arrived> = {}): Arrived => ({
    host: "api.anthropic.com",
    method: "POST",
    target: "/v1/messages?beta=true",
    fields: [
      ["anthropic-beta", "one,two"],
      ["authorization", `Bearer ${crypto.randomUUID()}`],
      ["x-id", crypto.randomUUID()],
    ],
    body: JSON.stringify(content),
    ...more,
  });
  const same = arrive(body());

  test("finds nothing between two runs of one tool, but for keys, ids and hosts", () => {
    expect(compareRequests([same], [arrive(body(), { host: "127.0.0.1:1" })])).toEqual([]);
  });

  test.each([
    [
      "a mark",
      [arrive(body({ system: [{ text: "s", cache_control: { type: "ephemeral" } }] }))],
      ["body system[].cache_control.scope"],
    ],
    ["the order of tools", [arrive(body({ tools: [{ name: "b" }, { name: "a" }] }))], ["body tools order"]],
    [
      "a beta",
      [
        arrive(body(), {
          fields: [
            ["anthropic-beta", "one"],
            ["x-id", crypto.randomUUID()],
          ],
        }),
      ],
      ["beta two"],
    ],
    ["a field", [arrive(body(), { fields: [["anthropic-beta", "one,two"]] })], ["header x-id"]],
    ["a member", [arrive(body({ diagnostics: null }))], ["body diagnostics"]],
    ["a query", [arrive(body(), { target: "/v1/messages" })], ["query"]],
    ["a request", [same, same], ["request POST /v1/messages"]],
    [
      "a path",
      [arrive(body(), { target: "/v1/other" })],
      ["request POST /v1/messages", "request POST /v1/other"],
    ],
  ])("finds %s", (_, through, places) => {
    expect(compareRequests([same], through)).toEqual(places);
  });
});
