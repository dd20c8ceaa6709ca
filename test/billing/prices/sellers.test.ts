import { findProvider as packageProvider } from "@pydantic/genai-prices";
import { describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { ANY_SELLER, findPrice, loadBook, type Seller } from "../../../src/billing/prices.ts";
import { PriceBook } from "../../../src/billing/prices/book.ts";
import overlay from "../../../src/billing/prices/overlay.json";
import { findProvider, KNOWN_PROVIDERS, sellerOf } from "../../../src/billing/prices/sellers.ts";
import { checkConfigText } from "../../../src/config/file/load.ts";

const book = loadBook();
const AT = new Date("2026-11-20T12:00:00Z");

function priceOf(model: string, seller: Partial<Seller>, at = AT) {
  return findPrice({ book, overrides: new Map(), seller: { ...ANY_SELLER, ...seller } }, model, at);
}

describe("an address decides whose prices are paid", () => {
  test.each([
    ["https://api.anthropic.com", "anthropic"],
    ["https://api.anthropic.com/v1", "anthropic"],
    ["https://API.OPENAI.COM/v1", "openai"],
    ["https://eu.api.openai.com/v1", "openai"],
    ["https://generativelanguage.googleapis.com", "google"],
    ["https://us-east5-aiplatform.googleapis.com/v1", "google"],
    ["https://bedrock-runtime.us-east-1.amazonaws.com/openai/v1", "aws"],
    ["https://mine.openai.azure.com", "azure"],
    ["https://api.deepseek.com/anthropic", "deepseek"],
    ["https://api.moonshot.ai/v1", "moonshotai"],
    ["https://api.moonshot.cn/v1", "moonshotai"],
    ["https://api.z.ai/api/anthropic", "zai"],
    ["https://api.minimax.io/anthropic", "minimax"],
    ["https://api.x.ai/v1", "x-ai"],
    ["https://api.mistral.ai/v1", "mistral"],
    ["https://openrouter.ai/api/v1", "openrouter"],
    ["https://api.groq.com/openai/v1", "groq"],
    ["https://api.cerebras.ai/v1", "cerebras"],
    ["https://dashscope-intl.aliyuncs.com/apps/anthropic", "alibaba"],
    ["https://router.huggingface.co/nebius/v1", "huggingface_nebius"],
  ])("the address %s pays the prices of %s", (url, provider) => {
    expect(findProvider(new URL(url))).toBe(provider);
  });

  test.each([
    "https://api.anthropic.com.example",
    "https://notapi.anthropic.com",
    "https://api.openai.com@relay.example",
    "https://relay.example/api.openai.com",
    "https://fakegoogleapis.com",
    "https://bedrock-runtime.example.com",
    "http://127.0.0.1:11434",
  ])("%s belongs to no known seller", (url) => {
    expect(findProvider(new URL(url))).toBeNull();
  });

  test("every provider of the price package is known, by the same address as in the package", () => {
    const text = readFileSync(new URL(import.meta.resolve("@pydantic/genai-prices")), "utf8");
    const ids = [...text.matchAll(/^ {4}id: "([^"]+)",?$/gm)].flatMap(([, id]) => id ?? []);
    expect(ids.length).toBeGreaterThan(40);
    expect([...KNOWN_PROVIDERS].toSorted()).toEqual(
      [...new Set([...ids, ...Object.keys(overlay.providers)])].toSorted(),
    );
    // The package has patterns of addresses. Only a pattern that means a single address can be compared.
    for (const id of ids) {
      const pattern = packageProvider({ providerId: id })?.api_pattern ?? "";
      const address = pattern.replace(/\((?:\?:)?\/\|\$\)$/, "").replaceAll("\\", "");
      if (!/^https:\/\/[a-z0-9./-]+[a-z]$/.test(address)) continue;
      expect([address, findProvider(new URL(address))]).toEqual([address, id]);
    }
  });
});

describe("a channel pays the prices of its seller", () => {
  const sellerFor = (setting: string, platform = "messages") => {
    const text = `channels: { a: { platform: ${platform}, credential: x, ${setting} } }`;
    const channel = checkConfigText(text, "/nowhere/gateway.yaml", {}).catalog.channels.get("a");
    if (channel === undefined) throw new Error("no channel");
    return sellerOf(channel);
  };

  test("the seller of a channel that is not free is its `price_provider`, or else the provider at its address", () => {
    expect(sellerFor("base_url: https://api.anthropic.com")).toEqual({
      provider: "anthropic",
      makers: ["anthropic"],
      free: false,
      region: null,
      bill: "book",
    });
    expect(sellerFor("base_url: https://relay.example, price_provider: openrouter")).toMatchObject({
      provider: "openrouter",
    });
    expect(sellerFor("base_url: http://localhost:11434, free: true")).toMatchObject({
      provider: null,
      free: true,
    });
    expect(sellerFor("base_url: https://eu.api.openai.com/v1", "responses")).toMatchObject({
      provider: "openai",
      region: "eu",
    });
  });
});

test.each([
  ["base_url: https://openrouter.ai/api", "openrouter", "reported"],
  ["base_url: https://ai-gateway.vercel.sh/v1", "vercel", "reported"],
  ["base_url: https://openrouter.ai/api, bill: book", "openrouter", "book"],
  ["base_url: https://relay.example, price_provider: vercel", "vercel", "book"],
])("a channel with `%s` pays the prices of %s and gets `bill: %s`", (setting, provider, bill) => {
  const text = `channels: { a: { platform: chat, credential: x, ${setting} } }`;
  const channel = checkConfigText(text, "/nowhere/gateway.yaml", {}).catalog.channels.get("a");
  expect(sellerOf(channel!)).toMatchObject({ provider, bill });
});

test("a model at Vercel costs what its maker asks", () => {
  const seller = { ...ANY_SELLER, provider: "vercel" };
  const sources = { book: loadBook(), overrides: new Map(), seller };
  const price = findPrice(sources, "anthropic/claude-sonnet-4.5", new Date("2026-11-20"));
  expect(price?.rates).toMatchObject({ input: "3", output: "15" });
});

describe("a model's price depends on its seller", () => {
  test.each([
    ["deepseek-v4-pro", { provider: "fireworks" }, "1.74", "book 2026-11-28 fireworks"],
    ["deepseek-v4-pro", { provider: "quicksilverpro" }, "0.435", "book 2026-11-28 quicksilverpro"],
    ["deepseek-v4-pro", { provider: "deepseek" }, "0.66", "book 2026-11-28 deepseek"],
    ["deepseek-v4-pro", { provider: null }, "0.66", "book 2026-11-28 deepseek (by name)"],
    ["glm-4.6", { provider: "zai" }, "0.6", "book 2026-11-28 zai"],
    ["glm-4.6", { provider: null }, "0.6", "book 2026-11-28 zai (by name)"],
    ["glm-5.1", { provider: null }, "1.4", "book 2026-11-28 zai (by name)"],
    ["qwen3-coder-plus", { provider: "alibaba" }, "1", "book 2026-11-28 alibaba"],
    ["qwen3.8-max", { provider: null }, "2", "book 2026-11-28 alibaba (by name)"],
    ["grok-4.7", { provider: "x-ai" }, "2", "book 2026-11-28 x-ai"],
    ["mistral-large-4", { provider: "mistral" }, "1.36", "book 2026-11-28 mistral"],
    ["mistral-large-latest", { provider: "mistral" }, "0.5", "book 2026-11-28 mistral"],
    ["mistral-small-latest", { provider: "mistral" }, "0.15", "book 2026-11-28 mistral"],
    ["deepseek-v4-flash", { provider: "deepseek" }, "0.15", "book 2026-11-28 deepseek"],
    ["deepseek-flash", { provider: "deepseek" }, "0.15", "book 2026-11-28 deepseek"],
    ["kimi-k3", { provider: "moonshotai" }, "3", "book 2026-11-28 moonshotai"],
    ["anthropic/claude-sonnet-4.5", { provider: "openrouter" }, "3", "book 2026-11-28 openrouter"],
    ["gpt-5", { provider: "azure" }, "1.25", "book 2026-11-28 openai"],
    ["claude-sonnet-4-5@20250929", { provider: "google" }, "3", "book 2026-11-28 anthropic"],
    ["us.anthropic.claude-sonnet-4-5-20250929-v1:0", { provider: "aws" }, "3.3", "book 2026-11-28 aws"],
    ["global.anthropic.claude-sonnet-4-5-20250929-v1:0", { provider: "aws" }, "3", "book 2026-11-28 aws"],
    [
      "us.anthropic.claude-sonnet-4-5-20250929-v1:0",
      { provider: null },
      "3",
      "book 2026-11-28 anthropic (by name)",
    ],
    ["qwen/qwq-32b:free", { provider: "openrouter" }, "0", "book 2026-11-28 openrouter"],
  ])("a million input tokens of %s, sold by %j, cost $%s", (model, seller, input, source) => {
    const price = priceOf(model, seller);
    expect([price?.rates["input"], price?.source]).toEqual([input, source]);
  });

  test.each([
    ["gpt-5", "anthropic"],
    ["claude-sonnet-4-5", "openai"],
    ["claude-sonnet-4-5", "deepseek"],
    ["gpt-5", "nobody"],
    ["gpt-5", "constructor"],
  ])("%s has no price at %s, though others sell it", (model, provider) => {
    expect(priceOf(model, { provider })).toBeNull();
  });

  test("at an unknown address, openai/gpt-5 costs what OpenAI asks, and anthropic/gpt-5 has no price", () => {
    expect(priceOf("openai/gpt-5", {})?.source).toContain("openai (by name)");
    expect(priceOf("anthropic/gpt-5", {})).toBeNull();
    expect(priceOf("qwen/gpt-5", {})).toBeNull();
  });

  test("a name that two makers use has no price at an unknown address", () => {
    const line = (provider: string, id: string) =>
      JSON.stringify({ provider, ids: [id], periods: [{ rates: { input: "1" } }] });
    const text = [
      JSON.stringify({
        date: "2026-01-01",
        source: "test",
        providers: { deepseek: [], mistral: [], openai: [] },
      }),
      line("deepseek", "twin"),
      line("deepseek", "own"),
      line("mistral", "twin"),
      line("openai", "both"),
      line("mistral", "both"),
      "",
    ].join("\n");
    const twoMakers = new PriceBook(() => text);
    const find = (model: string, makers: readonly string[]) => {
      const seller = { ...ANY_SELLER, makers };
      return findPrice({ book: twoMakers, overrides: new Map(), seller }, model, AT)?.source ?? null;
    };
    expect(find("twin", ["openai"])).toBeNull();
    expect(find("own", ["openai"])).toBe("book 2026-01-01 deepseek (by name)");
    // Of two makers, the one to which the platform belongs comes first.
    expect(find("both", ["openai"])).toBe("book 2026-01-01 openai (by name)");
  });

  test("a price changes by the hour and at weekends if the seller charges so", () => {
    const at = (time: string) =>
      priceOf("deepseek-v4-pro", { provider: "deepseek" }, new Date(time))?.rates["input"];
    expect(at("2026-08-16T02:00:00Z")).toBe("0.435");
    // 2026-11-20 is a Friday.
    expect(at("2026-11-20T00:59:59Z")).toBe("0.66");
    expect(at("2026-11-20T01:00:00Z")).toBe("1.32");
    expect(at("2026-11-20T03:59:59Z")).toBe("1.32");
    expect(at("2026-11-20T04:00:00Z")).toBe("0.66");
    expect(at("2026-11-20T09:59:59Z")).toBe("1.32");
    // Saturday begins in Beijing at 16:00 UTC of Friday, and Monday at 16:00 of Sunday.
    expect(at("2026-11-21T02:00:00Z")).toBe("0.66");
    expect(at("2026-11-22T02:00:00Z")).toBe("0.66");
    expect(at("2026-11-23T02:00:00Z")).toBe("1.32");
  });

  test("a public holiday, in the seller's time zone, has no peak price", () => {
    const at = (time: string) =>
      priceOf("deepseek-flash", { provider: "deepseek" }, new Date(time))?.rates["input"] ?? null;
    expect(at("2026-09-09T15:59:59Z")).toBeNull();
    // The first day is a Thursday, and the second one is a Friday that is a holiday.
    expect(at("2026-09-24T02:00:00Z")).toBe("0.3");
    expect(at("2026-09-25T02:00:00Z")).toBe("0.15");
    expect(at("2026-09-28T02:00:00Z")).toBe("0.3");
    expect(at("2026-10-01T02:00:00Z")).toBe("0.15");
    expect(at("2026-10-07T09:59:59Z")).toBe("0.15");
    expect(at("2026-10-08T01:00:00Z")).toBe("0.3");
    expect(at("2027-01-01T02:00:00Z")).toBe("0.15");
    expect(at("2027-01-04T02:00:00Z")).toBe("0.3");
  });

  test("a model's name has no price from the moment at which the seller retires it", () => {
    const at = (time: string) => priceOf("deepseek-chat", {}, new Date(time))?.rates["input"] ?? null;
    expect(at("2026-04-23T23:59:59Z")).toBe("0.28");
    expect(at("2026-07-24T15:58:59Z")).toBe("0.14");
    expect(at("2026-07-24T15:59:00Z")).toBeNull();
  });
});
