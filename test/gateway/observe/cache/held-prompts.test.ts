// Prompts are held until their answers have ended, within bounds.

import { expect, test } from "bun:test";
import { MESSAGES_LAYOUT } from "../../../../src/dialects/prompt/layouts.ts";
import { HeldPrompts } from "../../../../src/gateway/observe/cache/held-prompts.ts";

const MEGABYTE = 1024 * 1024;
const bodyOf = (bytes: number): Buffer => Buffer.from(`{"messages":["${"a".repeat(bytes)}"]}`);
const afterwards = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

test("a prompt is held until it is read, and read once", async () => {
  const prompts = new HeldPrompts();
  const body = bodyOf(1000);
  const held = prompts.hold(body, MESSAGES_LAYOUT);
  await afterwards();
  expect(prompts.heldBytes).toBe(body.length);
  const prompt = held.read();
  expect(prompt?.parts[2]).toHaveLength(1);
  body.fill("x");
  expect(held.read()).toBe(prompt);
  held.release();
  expect(prompts.heldBytes).toBe(0);
});

test("a prompt that is not needed is released unread", () => {
  const prompts = new HeldPrompts();
  const held = prompts.hold(bodyOf(1000), MESSAGES_LAYOUT);
  held.release();
  expect([prompts.heldBytes, held.read()]).toEqual([0, null]);
});

test("a body above 1 MB is read as soon as the event loop is free", async () => {
  const prompts = new HeldPrompts();
  const held = prompts.hold(bodyOf(MEGABYTE), MESSAGES_LAYOUT);
  await afterwards();
  expect(prompts.heldBytes).toBe(0);
  expect(held.read()?.parts[2]).toHaveLength(1);
});

test("of many prompts at once, 64 MB are held, and the others are read as soon as the event loop is free", async () => {
  const prompts = new HeldPrompts();
  const body = bodyOf(MEGABYTE - 100);
  const held = Array.from({ length: 80 }, () => prompts.hold(body, MESSAGES_LAYOUT));
  await afterwards();
  expect(prompts.heldBytes).toBe(64 * body.length);
  for (const each of held) expect(each.read()?.parts[2]).toHaveLength(1);
  expect(prompts.heldBytes).toBe(0);
});
