// Connections on both sides: reused where they can be, never mixed up, none left behind.

import { expect, test } from "bun:test";
import { makeGate } from "../../harness/upstreams/demo-upstream.ts";
import { openRaw, parseAnswer, rawRequest, writeRequest } from "../../harness/raw.ts";
import { DIALECTS, inWorld, makeRequest, MESSAGE } from "../world.ts";

test("a refusal is whole before its body has arrived, and its connection is then closed", async () => {
  await inWorld(async ({ gateway }) => {
    const body = { ...MESSAGE, x: "x".repeat(5_000_000) };
    const fields = { "x-api-key": "sk-nobody" };
    const answer = await rawRequest(gateway.port, { target: "/v1/messages", fields, body });
    expect([answer.status, answer.complete, answer.field("connection")]).toEqual([401, true, "close"]);
    expect(JSON.parse(answer.text).error.type).toBe("authentication_error");
  });
});

test.each(DIALECTS)(
  "an upstream's connection is reused after whole and streamed answers: %s",
  async (dialect) => {
    await inWorld(async (world) => {
      for (const stream of [false, true, true, false]) await world.trace(makeRequest(dialect, stream));
      expect(new Set(world.upstream.requests.map(({ connection }) => connection)).size).toBe(1);
    });
  },
);

test("many clients that leave at random moments leave nothing open", async () => {
  const COUNT = 300;
  await inWorld(async (world) => {
    const gate = makeGate();
    world.upstream.always({ words: 20, gates: { 8: gate } });
    const clients = await Promise.all(Array.from({ length: COUNT }, () => openRaw(world.gateway.port)));
    const leaving = clients.map(async (client, index) => {
      const dialect = DIALECTS[index % DIALECTS.length]!;
      client.send(writeRequest(makeRequest(dialect, index % 3 > 0)));
      // At once, after the head, in the middle of the stream, or not at all.
      const moment = index % 5;
      if (moment === 1) await new Promise(setImmediate);
      if (moment === 2 && index % 3 > 0 && dialect !== "chat") await client.until("\r\n\r\n");
      if (moment < 4) client.reset();
    });
    await Promise.all(leaving);
    gate.open();
    const records = await world.gateway.recorded(COUNT);
    const stayed = clients.filter((_, index) => index % 5 === 4);
    await Promise.all(stayed.map((client) => client.until((bytes) => parseAnswer(bytes)?.complete === true)));
    expect(new Set(records.map(({ id }) => id)).size).toBe(COUNT);
    for (const [index, each] of world.upstream.requests.entries())
      expect([index, await each.ended]).not.toEqual([index, "broken"]);
    await new Promise(setImmediate);
    const { open, idle } = world.gateway.running.gateway.client.stats();
    expect(open).toBe(idle);
    const lines = world.gateway.ledger();
    expect(lines).toHaveLength(world.upstream.requests.length);
    expect(new Set(lines.map((line) => line["id"])).size).toBe(lines.length);
  });
});
