// Connections on both sides: reused where they can be, never mixed up, none left behind.

import { describe, expect, test } from "bun:test";
import { makeGate } from "../../harness/upstreams/demo-upstream.ts";
import { keyOf } from "../../harness/gateway.ts";
import { openRaw, parseAnswer, rawRequest, writeRequest } from "../../harness/raw.ts";
import { DIALECTS, inWorld, makeRequest, MESSAGE, onChannels } from "../world.ts";

/** The whole answers so far on one connection, in order; only bodies with a length. */
function splitAnswers(bytes: Buffer): { status: number; text: string }[] {
  const answers = [];
  for (let rest = bytes; rest.length > 0;) {
    const answer = parseAnswer(rest);
    if (answer?.complete !== true) break;
    answers.push({ status: answer.status, text: answer.text });
    rest = rest.subarray(rest.indexOf("\r\n\r\n") + 4 + answer.body.length);
  }
  return answers;
}

describe("a client's connection", () => {
  test("carries one request after the other, including refused ones", async () => {
    await inWorld(async ({ gateway }) => {
      const client = await openRaw(gateway.port);
      const asked = [
        makeRequest("messages"),
        { target: "/v1/messages", fields: { "x-api-key": "sk-nobody" }, body: MESSAGE },
        { target: "/nowhere", body: MESSAGE },
        makeRequest("messages"),
        { target: "/healthz" },
        makeRequest("chat"),
      ];
      for (const [index, request] of asked.entries()) {
        client.send(writeRequest(request));
        await client.until((bytes) => splitAnswers(bytes).length > index);
      }
      expect(splitAnswers(client.bytes()).map(({ status }) => status)).toEqual([
        200, 401, 404, 200, 200, 200,
      ]);
      client.close();
    });
  });

  test("gets the whole refusal before its body has arrived, and is then closed", async () => {
    await inWorld(async ({ gateway }) => {
      const body = { ...MESSAGE, x: "x".repeat(5_000_000) };
      const answer = await rawRequest(gateway.port, {
        target: "/v1/messages",
        fields: { "x-api-key": "sk-nobody" },
        body,
      });
      expect([answer.status, answer.complete, answer.field("connection")]).toEqual([401, true, "close"]);
      expect(JSON.parse(answer.text).error.type).toBe("authentication_error");
    });
  });

  test("may carry pipelined requests, and answers each in order", async () => {
    await inWorld(async ({ gateway }) => {
      const client = await openRaw(gateway.port);
      const words = ["first", "second", "third"];
      const ask = (content: string) =>
        makeRequest("messages", false, { messages: [{ role: "user", content }] });
      client.send(Buffer.concat(words.map((word) => writeRequest(ask(word)))));
      await client.until((bytes) => splitAnswers(bytes).length === words.length);
      const answers = splitAnswers(client.bytes());
      for (const [index, word] of words.entries()) expect(answers[index]!.text).toContain(`\\"${word}\\"`);
      client.close();
    });
  });

  test("a client's connection of HTTP/1.0 is closed to end the answer", async () => {
    await inWorld(async ({ gateway }) => {
      for (const stream of [false, true]) {
        const text = writeRequest(makeRequest("messages", stream)).toString().replace("HTTP/1.1", "HTTP/1.0");
        const answer = await rawRequest(gateway.port, text);
        expect(answer.status).toBe(200);
        expect(answer.field("transfer-encoding")).toBeUndefined();
        expect(answer.text).toContain(stream ? '"message_stop"' : '"usage"');
      }
    });
  });

  test("may send its body in chunks, or wait for 100-continue first", async () => {
    await inWorld(async (world) => {
      const body = JSON.stringify(MESSAGE);
      const head = `POST /v1/messages HTTP/1.1\r\nhost: localhost\r\nx-api-key: ${keyOf("messages")}\r\n`;
      const half = body.length >> 1;
      const chunk = (text: string): string => `${text.length.toString(16)}\r\n${text}\r\n`;
      const chunks = chunk(body.slice(0, half)) + chunk(body.slice(half)) + "0\r\n\r\n";
      expect(
        (await rawRequest(world.gateway.port, `${head}transfer-encoding: chunked\r\n\r\n${chunks}`)).status,
      ).toBe(200);
      expect(Buffer.from(world.upstream.requests[0]!.body).toString()).toBe(body);
      expect(world.upstream.requests[0]!.field("content-length")).toBe(String(body.length));
      const client = await openRaw(world.gateway.port);
      client.send(`${head}expect: 100-continue\r\ncontent-length: ${body.length}\r\n\r\n`);
      await client.until("100 Continue");
      client.send(body);
      await client.until((bytes) => parseAnswer(bytes)?.complete === true);
      expect(parseAnswer(client.bytes())!.status).toBe(200);
      client.close();
    });
  });
});

describe("an upstream's connection", () => {
  test.each(DIALECTS)("is reused after whole and streamed answers: %s", async (dialect) => {
    await inWorld(async (world) => {
      for (const stream of [false, true, true, false]) await world.trace(makeRequest(dialect, stream));
      expect(new Set(world.upstream.requests.map(({ connection }) => connection)).size).toBe(1);
    });
  });

  test("is closed after a break and not reused", async () => {
    await inWorld(
      async (world) => {
        world.upstream.next("stall");
        await world.trace(makeRequest("messages", true));
        expect(await world.upstream.ended(0)).toBe("left");
        await world.trace(makeRequest("messages"));
        expect(world.upstream.requests.map(({ connection }) => connection)).toEqual([1, 2]);
      },
      onChannels({ timeouts: { idle: "30ms" } }),
    );
  });
});

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
