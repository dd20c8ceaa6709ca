import { expect, test } from "bun:test";
import { looksSecret, newSecret } from "../../src/lib/secret.ts";

test("a new secret is sk- and 43 letters and digits, and no two are the same", () => {
  const secrets = Array.from({ length: 1000 }, newSecret);
  for (const secret of secrets) expect(secret).toMatch(/^sk-[0-9A-Za-z]{43}$/);
  expect(new Set(secrets).size).toBe(1000);
});

test("all 62 letters and digits occur at every place of new secrets, except at sk- and the character after it", () => {
  const secrets = Array.from({ length: 2000 }, newSecret);
  for (let place = 4; place < 46; place += 1) {
    expect(new Set(secrets.map((secret) => secret[place])).size).toBe(62);
  }
});

test("a word that begins like a provider's key and is long enough counts as a secret", () => {
  expect(["sk-ant-api03-x", "AIzaSyD4iE2xVSpkLLOXoyqT", "gsk_0123456789"].every(looksSecret)).toBe(true);
  expect(["sketch", "codex", "claude-max", "sk-1"].some(looksSecret)).toBe(false);
});
