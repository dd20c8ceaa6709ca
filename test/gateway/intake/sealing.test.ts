import { expect, test } from "bun:test";
import { existsSync, mkdirSync } from "node:fs";
import { createSealing, nameSealingFile } from "../../../src/gateway/intake/sealing.ts";
import { makeTempFolder } from "../../harness/temp.ts";

const REAL = "sk-or-v1-0123456789abcdef";
const channel = (credential: string, address = "https://api.example.com/v1") => ({
  credential,
  baseUrl: new URL(address),
});
const refuse = (text: string): never => {
  throw new Error(text);
};

test("the envelopes of a channel are proved with its credential, and no file is made for it", () => {
  using folder = makeTempFolder();
  const path = folder.join("gateway.yaml");
  expect(createSealing(path, refuse)(channel(REAL))).toBe(REAL);
  expect(existsSync(nameSealingFile(path))).toBe(false);
});

test.each([
  ["", "https://api.example.com"],
  ["none", "https://api.example.com"],
  ["ollama", "http://127.0.0.1:11434"],
  ["sk-no-key-required", "http://localhost:8080"],
])("a credential that anybody can guess (%p at %s) proves nothing: a random key does", (word, address) => {
  using folder = makeTempFolder();
  const path = folder.join("gateway.yaml");
  const secret = createSealing(path, refuse)(channel(word, address));
  expect(secret).toMatch(/^[0-9a-f]{64} /);
  // After a restart, and at no other gateway, and for no other server.
  expect(createSealing(path, refuse)(channel(word, address))).toBe(secret);
  expect(createSealing(folder.join("other.yaml"), refuse)(channel(word, address))).not.toBe(secret);
  expect(createSealing(path, refuse)(channel(word, "http://127.0.0.1:1"))).not.toBe(secret);
});

test("without a place for the file, the key lasts as long as the gateway, which says so once", () => {
  using folder = makeTempFolder();
  const path = folder.join("gateway.yaml");
  mkdirSync(nameSealingFile(path));
  const said: string[] = [];
  const seal = createSealing(path, (text) => said.push(text));
  expect(seal(channel("none"))).toBe(seal(channel("none")));
  expect(said).toEqual([expect.stringContaining(nameSealingFile(path))]);
  const memory = createSealing(null, refuse);
  expect(memory(channel("none"))).toBe(memory(channel("none")));
  expect(memory(channel("none"))).not.toBe(createSealing(null, refuse)(channel("none")));
});
