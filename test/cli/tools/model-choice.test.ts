// The model that a tool starts with: from real lists of each provider.

import { expect, test } from "bun:test";
import { chooseMainModel, chooseSmallModel } from "../../../src/cli/tools/programs/model-choice.ts";

const ANTHROPIC = [
  "claude-3-5-haiku-20241022",
  "claude-3-7-sonnet-20250219",
  "claude-haiku-4-5-20251001",
  "claude-opus-4-1-20250805",
  "claude-opus-4-20250514",
  "claude-sonnet-4-20250514",
  "claude-sonnet-4-5-20250929",
];
const OPENAI = [
  "gpt-4o-2024-08-06",
  "gpt-4.1",
  "gpt-5-2025-08-07",
  "gpt-5-mini",
  "gpt-5.1-codex",
  "gpt-5.5",
  "gpt-image-1",
  "gpt-oss-120b",
  "o3",
  "text-embedding-3-small",
];
const GOOGLE = [
  "gemini-2.0-flash",
  "gemini-2.5-flash-lite",
  "gemini-2.5-pro",
  "gemini-3-flash-preview",
  "gemini-3-pro-image-preview",
  "gemini-3-pro-preview",
  "gemini-embedding-001",
];

test.each<[string, readonly string[], string, string]>([
  ["Anthropic's", ANTHROPIC, "claude-sonnet-4-5-20250929", "claude-haiku-4-5-20251001"],
  [
    "Anthropic's with a newer Opus",
    [...ANTHROPIC, "claude-opus-5-5"],
    "claude-opus-5-5",
    "claude-haiku-4-5-20251001",
  ],
  [
    "Anthropic's with a Sonnet and an Opus of one generation",
    ["claude-opus-5-5", "claude-sonnet-5"],
    "claude-sonnet-5",
    "claude-sonnet-5",
  ],
  ["OpenAI's", OPENAI, "gpt-5.5", "gpt-5-mini"],
  [
    "OpenAI's with Codex' own default",
    [...OPENAI, "gpt-6.1-sol", "gpt-6.1-luna"],
    "gpt-6.1-sol",
    "gpt-5-mini",
  ],
  ["OpenAI's with two kinds of one version", ["gpt-5.1", "gpt-5.1-codex"], "gpt-5.1-codex", "gpt-5.1-codex"],
  ["Google's", GOOGLE, "gemini-3-pro-preview", "gemini-2.5-flash-lite"],
  ["a relay's", [...GOOGLE, ...ANTHROPIC], "claude-sonnet-4-5-20250929", "claude-haiku-4-5-20251001"],
  ["a local server's", ["gpt-oss-120b", "qwen3-coder"], "gpt-oss-120b", "gpt-oss-120b"],
  ["an unknown provider's", ["text-embedding-x", "glm-5"], "glm-5", "glm-5"],
  ["a group's of small models", ["gpt-5-nano", "gpt-5-mini"], "gpt-5-mini", "gpt-5-mini"],
])("of %s models, the newest of the best family is chosen", (_, models, main, small) => {
  expect([chooseMainModel(models), chooseSmallModel(models)]).toEqual([main, small]);
  expect(chooseMainModel(models.toReversed())).toBe(main);
});

test("the user's own default stays if the gateway lists it", () => {
  expect(chooseMainModel(ANTHROPIC, "claude-opus-4-1-20250805")).toBe("claude-opus-4-1-20250805");
  expect(chooseMainModel(ANTHROPIC, "qwen3-coder")).toBe("claude-sonnet-4-5-20250929");
});

test("no model is chosen from an empty list", () => {
  expect([chooseMainModel([]), chooseSmallModel([])]).toEqual([null, null]);
});
