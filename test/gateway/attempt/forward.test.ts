// What goes upstream: the client's fields, the channel's credential and the channel's own fields.

import { afterEach, expect, test } from "bun:test";
import { openScripted, type Scripted } from "../scripted.ts";

let scripted: Scripted;
afterEach(() => scripted.stop());

const OK = { chunks: ['{"type":"message","model":"m","usage":{"input_tokens":5,"output_tokens":7}}'] };

/** The values of these fields, as the channel with these own headers gets them. */
async function send(headers: Record<string, string>, ...names: string[]): Promise<string[][]> {
  const a = {
    platform: "messages",
    base_url: "http://127.0.0.1:1",
    credential: "credential-of-the-channel",
    headers,
  };
  scripted = await openScripted({ channels: { a: [OK] }, more: { channels: { a } } });
  await scripted.run();
  const fields = [...(scripted.requests[0]?.fields ?? [])];
  return names.map((wanted) => fields.flatMap(([name, value]) => (name === wanted ? [value] : [])));
}

test("an upstream gets the channel's credential once, and no key", async () => {
  expect(await send({}, "x-api-key", "authorization")).toEqual([["credential-of-the-channel"], []]);
});

test("a channel's own headers take the place of the credential's and of the client's", async () => {
  const own = { "X-Api-Key": "another-credential", Authorization: "Bearer of-the-channel", "x-own": "1" };
  expect(await send(own, "x-api-key", "authorization", "x-own")).toEqual([
    ["another-credential"],
    ["Bearer of-the-channel"],
    ["1"],
  ]);
});
