import { describe, expect, test } from "bun:test";
import * as fc from "fast-check";
import { ANY_SELLER, findPrice, loadBook } from "../../../src/billing/prices.ts";
import { isSameModel, isMovingName, listNames } from "../../../src/billing/prices/names.ts";

const book = loadBook();
const AT = new Date("2026-11-20T12:00:00Z");
const inputOf = (model: string, provider: string | null = null) =>
  findPrice({ book, overrides: new Map(), seller: { ...ANY_SELLER, provider } }, model, AT)?.rates["input"] ??
  null;

describe("names of the same model have the same price", () => {
  test.each([
    ["models/gemini-2.5-pro", "1.25"],
    ["publishers/google/models/gemini-2.5-pro", "1.25"],
    ["projects/p/locations/global/publishers/anthropic/models/claude-opus-5@20260601", "5"],
    ["us.anthropic.claude-opus-5", "5"],
    ["eu.anthropic.claude-opus-5", "5"],
    ["global.anthropic.claude-opus-5", "5"],
    ["anthropic.claude-sonnet-4-5-20250929-v1:0", "3"],
    ["us.anthropic.claude-opus-4-6-v1", "5"],
    ["anthropic.claude-3-5-sonnet-20241022-v2:0", "3"],
    ["anthropic/claude-haiku-5.5", "0.1"],
    ["anthropic/claude-fable-5.2", "8"],
    ["gpt-6-2-sol", "2"],
    ["anthropic/claude-sonnet-4-5", "3"],
    ["anthropic/claude-sonnet-4.5", "3"],
    ["openai/gpt-5", "1.25"],
    ["openai.gpt-5.4", "2.5"],
    ["us.openai.gpt-5.4", "2.5"],
    ["google/gemini-2.5-pro", "1.25"],
    ["x-ai/grok-4", "3"],
    ["z-ai/glm-5.2", "1.4"],
    ["moonshotai/kimi-k3", "3"],
    ["claude-sonnet-4-5-20250929", "3"],
    ["claude-sonnet-4-5@20250929", "3"],
    ["claude-opus-5@default", "5"],
    ["gpt-5.4-2025-04-14", "2.5"],
    ["gemini-2.0-flash-001", "0.1"],
    ["claude-sonnet-4-5[1m]", "3"],
    ["claude-sonnet-4-5-latest", "3"],
    ["claude-3-5-haiku-latest", "0.8"],
    ["chatgpt-4o-latest", "5"],
    ["gpt-5.1-chat-latest", "1.25"],
    ["x-ai/grok-4-latest", "3"],
    ["claude-fable-5-1-thinking", "10"],
    ["anthropic/claude-fable-5-1-thinking", "10"],
    ["openai/gpt-5:free", "1.25"],
    ["anthropic/claude-sonnet-4.5:beta", "3"],
    ["anthropic/claude-sonnet-4-5-20250929[1m]:beta", "3"],
  ])("%s costs $%s", (model, input) => {
    expect(inputOf(model)).toBe(input);
  });

  test("a snapshot with a price of its own does not cost what its model costs, even behind a prefix", () => {
    expect([inputOf("openai/gpt-4o-2024-05-13"), inputOf("openai/gpt-4o")]).toEqual(["5", "2.5"]);
  });

  test.each(
    "claude-opus-4-50|claude-opus-5-thinking-extra|gpt-5-thinking|qwen3-235b-a22b-thinking|gemini-flash-latest|anthropic-claude-opus-5|xanthropic/claude-opus-5|us.claude-opus-5|claude-opus-5:online|claude-opus-5[2m]|claude-opus-5@2025|claude-opus-5-v1|models/|anthropic/|:free|-latest|constructor|openai/__proto__|".split(
      "|",
    ),
  )("%p is not the name of a known model", (model) => {
    expect(inputOf(model)).toBeNull();
  });

  test.each([
    ["mistral-large-latest", true],
    ["ministral-8b-latest", true],
    ["gemini-flash-latest", true],
    ["~openai/gpt-mini-latest", true],
    ["grok-4-latest", false],
    ["gemini-2.5-flash-latest", false],
    ["o3-latest", false],
    ["llama-3.1-8b-latest", false],
    ["mistral-large", false],
  ])("the name %s means whatever version is newest: %p", (id, moves) => {
    expect(isMovingName(id)).toBe(moves);
  });

  test("a name that is nothing but a decoration is not shortened", () => {
    for (const name of ["models/", "anthropic/", ":free", "-latest", "[1m]"])
      expect(listNames(name, null).names).toEqual([name]);
  });
});

const ids = ["anthropic", "openai", "google"].flatMap((maker) =>
  book.listModels(maker).flatMap((model) => model.ids.map((id) => ({ maker, id }))),
);
const prefix = fc.constantFrom("", "models/", "publishers/x/models/", "us.", "eu.", "global.");
const suffix = fc.array(
  fc.constantFrom("[1m]", ":free", ":beta", "-latest", "@20250929", "-2026-01-31", "-v1:0"),
  {
    maxLength: 2,
  },
);

test("decorations of a model's name never change its price", () => {
  fc.assert(
    fc.property(fc.constantFrom(...ids), prefix, suffix, ({ maker, id }, before, after) => {
      // Only names of Bedrock begin with a region. They have the maker and a point before the id.
      const named = before.endsWith(".") ? `${before}${maker}.${id}` : `${before}${id}`;
      if (before.endsWith(".") && maker !== "anthropic") return;
      // Without a version before it, `-latest` is not a decoration: the name means whatever is newest.
      if (after.includes("-latest") && isMovingName(`${id}-latest`)) return;
      expect([named, inputOf(`${named}${after.join("")}`)]).toEqual([named, inputOf(id)]);
    }),
    { numRuns: 1000 },
  );
});

test("only complete decorations are removed: a name with any other beginning or end is another model", () => {
  const letters = fc.stringMatching(/^[a-z]{1,6}$/);
  fc.assert(
    fc.property(fc.constantFrom(...ids), letters, ({ id }, more) => {
      for (const name of [`${id}${more}`, `${more}${id}`, `${id}.${more}`, `${id}/${more}`])
        if (!ids.some((known) => known.id === name)) expect([name, inputOf(name)]).toEqual([name, null]);
    }),
    { numRuns: 1000 },
  );
});

test("at most 49 names are tried for a model, the given name first", () => {
  fc.assert(
    fc.property(fc.string({ maxLength: 300 }), (model) => {
      const { names } = listNames(model, null);
      expect(names[0]).toBe(model);
      expect(names.length).toBeLessThanOrEqual(49);
      for (const name of names) expect(model).toContain(name);
    }),
  );
  const long = listNames(`${"models/".repeat(500)}x${":free".repeat(500)}`, null);
  expect(long.names.length).toBeLessThanOrEqual(49);
});

describe("a comparison of two names says whether they mean one model", () => {
  test.each([
    ["claude-sonnet-4-5", "anthropic/claude-4.5-sonnet-20250929", true],
    ["gpt-5-mini", "openai/gpt-5-mini-2025-08-07", true],
    ["us.anthropic.claude-haiku-4-5-20251001-v1:0", "claude-haiku-4-5", true],
    ["Grok-4.1-Fast", "x-ai/grok-4-1-fast", true],
    ["gpt-5", "gpt-5-ultra", false],
    ["claude-opus-4-8", "claude-nova-9", false],
    ["gpt-5-mini", "deployment-7", false],
  ])("%s and %s are names of one model: %p", (one, other, isSame) => {
    expect([isSameModel(one, other), isSameModel(other, one)]).toEqual([isSame, isSame]);
  });
});
