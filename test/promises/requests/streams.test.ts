// The contract's promises about streams, broken answers and leaving clients.

import { describe, expect, test } from "bun:test";
import { gzipSync } from "node:zlib";
import { parseAnswer } from "../../harness/raw.ts";
import { DIALECTS, type Dialect, stream, whole } from "../world/answers.ts";
import type { Out } from "../world/upstream.ts";
import { eventually, type Group, openOwnWorld, type Line, useWorld } from "../world/world.ts";

const world = useWorld();
const messages = world.group("messages");
const responses = world.group("responses", { platform: "responses" });
const chats = world.group("chats", { platform: "responses", channels: { main: { platform: "chat" } } });
const content = world.group("content", { platform: "content" });
const crossed = world.group("crossed", {
  channels: { main: { platform: "chat" } },
  group: { convert: true },
});
const groups: Record<Dialect, Group> = { messages, responses, chat: chats, content };
const silent = world.group("silent", {
  channels: { first: { timeouts: { first_byte: "200ms", idle: "200ms" } }, second: { priority: 2 } },
});
const halting = world.group("halting", {
  channels: { first: { timeouts: { idle: "200ms" } }, second: { priority: 2 } },
});
const patient = world.group("patient", { channels: { main: { timeouts: { idle: "2s" } } } });
const two = { channels: { first: {}, second: { priority: 2 } } };
const pair = world.group("pair", two);
const held = world.group("held", two);

const SSE = { "content-type": "text/event-stream" };
const idOf = (head: Buffer): string => /x-request-id: (\w+)/i.exec(head.toString("latin1"))![1]!;
const lineOf = (id: string): Promise<Line> => eventually(() => world.lines(id)[0]);

describe("P93: each piece of a response reaches the client as it arrives", () => {
  const rows = DIALECTS.flatMap((dialect) => [1, 2].map((parts) => [dialect, parts] as const));
  test.each(rows)("each piece of a %s stream comes alone (pieces per event: %d)", async (dialect, parts) => {
    const group = groups[dialect];
    const pieces = stream(dialect, { text: "first words" }).flatMap((piece) =>
      parts === 1 ? [piece] : [piece.slice(0, -6), piece.slice(-6)],
    );
    const go = pieces.map(() => Promise.withResolvers<void>());
    group.channel().next(async (_, out) => {
      out.head(200, SSE);
      for (const [index, piece] of pieces.entries()) {
        await go[index]!.promise;
        out.write(piece);
      }
      out.end();
    });
    const asked = dialect === "chat" ? { stream_options: { include_usage: true } } : {};
    const client = await group.open(dialect, { stream: true, ...asked });
    let text = "";
    for (const [index, piece] of pieces.entries()) {
      // The upstream goes on only after the client has what came before.
      go[index]!.resolve();
      text += piece;
      await client.until((all) => parseAnswer(all)?.text === text);
    }
    await client.until((all) => parseAnswer(all)?.complete === true);
    client.close();
  });
});

test.each(["forwarded", "converted"] as const)("P93: no piece of a %s stream is held back", async (name) => {
  const group = name === "forwarded" ? chats : crossed;
  const [head = "", delta = "", ...rest] = stream("chat", { text: "words" });
  const go = Array.from({ length: 200 }, () => Promise.withResolvers<void>());
  group.channel().next(async (_, out) => {
    out.head(200, SSE);
    out.write(head);
    for (const [index, { promise }] of go.entries()) {
      await promise;
      out.write(delta.replace("words", `word-${index}.`));
    }
    for (const piece of rest) out.write(piece);
    out.end();
  });
  const client = await group.open(name === "forwarded" ? "chat" : "messages", { stream: true });
  const times = [performance.now()];
  for (const [index, { resolve }] of go.entries()) {
    resolve();
    await client.until(`word-${index}.`);
    times.push(performance.now());
  }
  client.close();
  // On a busy machine, most pieces take longer. Only the fastest ten consecutive pieces are measured.
  const fastest = Math.min(...times.slice(10).map((at, index) => at - times[index]!));
  expect(fastest).toBeLessThan(40);
});

test("P73: when a compressed stream pauses, the client gets what came before the pause", async () => {
  const pieces = ['event: ping\ndata: {"type":"ping"}\n\n', ...stream("messages")];
  const [first = new Uint8Array(), ...rest] = pieces.map((piece) => gzipSync(piece));
  const shown = Promise.withResolvers<void>();
  held.channel("first").next(async (_, out) => {
    out.head(200, { ...SSE, "content-encoding": "gzip" });
    out.write(first);
    await shown.promise;
    for (const piece of rest) out.write(piece);
    out.end();
  });
  const client = await held.open("messages", { stream: true });
  // The gateway waits a moment for more, because an error may follow, and then passes on what it has.
  await client.until("ping");
  shown.resolve();
  const all = await client.until((bytes) => parseAnswer(bytes)?.complete === true);
  expect(parseAnswer(all)?.text).toBe(pieces.join(""));
  client.close();
});

const BROKEN: Readonly<Record<Dialect, (text: string) => void>> = {
  messages: (text) => {
    expect(text).toContain("event: error\ndata: ");
    expect(text).not.toContain("message_stop");
  },
  responses: (text) => {
    const [, data = "{}"] = /event: response\.failed\ndata: (.*)/.exec(text) ?? [];
    expect(JSON.parse(data).response).toMatchObject({
      status: "failed",
      error: { code: expect.any(String), message: expect.stringMatching(/\w/) },
    });
    expect(text).not.toContain("response.completed");
  },
  chat: (text) => {
    expect(text).toMatch(/data: \{"error":/);
    expect(text).not.toContain("[DONE]");
  },
  content: (text) => {
    expect(text).toMatch(/data: \{"error":/);
    expect(text).not.toContain('"finishReason"');
  },
};

describe("P94: a response that breaks after its first byte never looks complete", () => {
  const rows = DIALECTS.flatMap((dialect) =>
    (["cut", "reset", "end"] as const).map((ending) => [dialect, ending] as const),
  );
  test.each(rows)("a broken %s response never looks complete (its end: %s)", async (dialect, ending) => {
    const group = groups[dialect];
    const pieces = stream(dialect, { text: "the beginning" });
    const upTo = pieces.findIndex((piece) => piece.includes("the beginning")) + 1;
    const held = Promise.withResolvers<void>();
    group.channel().next(async (_, out) => {
      out.head(200, SSE);
      for (const piece of pieces.slice(0, upTo)) out.write(piece);
      await held.promise;
      out.end(ending);
    });
    const client = await group.open(dialect, { stream: true });
    await client.until("the beginning");
    held.resolve();
    const isOver = (all: Buffer): boolean => parseAnswer(all)?.complete === true;
    const ended = await Promise.race([
      client.ended,
      client.until(isOver).then(
        () => "whole" as const,
        () => client.ended,
      ),
    ]);
    const text = client.bytes().toString();
    BROKEN[dialect](text);
    expect(ended).toBe(dialect === "content" ? "reset" : "whole");
    expect(await lineOf(idOf(client.bytes()))).toMatchObject({ outcome: "upstream_cut" });
    client.close();
  });
});

/** What the gateway writes after a cut event. In messages, a blank line would hide the error from clients. */
const OPENINGS: Readonly<Record<Dialect, string>> = {
  messages: "\nevent: error\ndata: {",
  responses: "\n\nevent: response.failed\ndata: {",
  chat: "\n\ndata: {",
  content: "\r\n\r\ndata: {",
};

test.each([...DIALECTS])(
  "P94: in %s, an event that was cut does not hide the error after it",
  async (dialect) => {
    const [first = "", second = ""] = stream(dialect);
    const pieces = [first, second.slice(0, -9)];
    groups[dialect].channel().next({ pieces, ending: "cut" });
    const { text } = await groups[dialect].ask(dialect, { stream: true });
    expect(text).toStartWith(pieces.join("") + OPENINGS[dialect]);
  },
);

test("P94: if a JSON body is too long to be held back and then breaks, the client's connection is reset", async () => {
  const begun = Promise.withResolvers<void>();
  messages.channel().next(async (_, out) => {
    out.head(200, { "content-type": "application/json", "content-length": String(9 << 20) });
    out.write(JSON.stringify(whole("messages", { text: "x".repeat(5 << 20) })));
    await begun.promise;
    out.end("cut");
  });
  const client = await messages.open("messages");
  await client.until("xxx");
  begun.resolve();
  const isWhole = client.until((all) => parseAnswer(all)?.complete === true);
  expect(await Promise.race([client.ended, isWhole])).toBe("reset");
  expect(await lineOf(idOf(client.bytes()))).toMatchObject({ outcome: "upstream_cut" });
});

test("P94: after an upstream's own error event, a content stream is reset", async () => {
  const error = `data: {"error":{"code":500,"message":"of upstream"}}\r\n\r\n`;
  content.channel().next({ pieces: [stream("content", { text: "the beginning" })[0]!, error] });
  const client = await content.open("content", { stream: true });
  expect(await client.ended).toBe("reset");
  expect(client.bytes().toString()).toContain(error);
});

test.each([...DIALECTS])("P94: a JSON body that breaks is an error in %s", async (dialect) => {
  const short = JSON.stringify(whole(dialect)).slice(0, -1);
  for (const cut of [{ body: whole(dialect), ending: "cut" }, { body: short }] as const) {
    groups[dialect].channel().next(cut);
    const answer = await groups[dialect].ask(dialect);
    expect([answer.status, JSON.parse(answer.text).error !== undefined]).toEqual([502, true]);
  }
});

test("P95: an upstream that is silent for longer than first_byte counts as failed", async () => {
  silent.channel("first").next((_, out) => out.left);
  const at = performance.now();
  const answer = await silent.ask("messages");
  expect(answer.status).toBe(200);
  expect(performance.now() - at).toBeLessThan(10_000);
  expect((await world.line(answer))["attempts"]).toMatchObject([
    { channel: "silent-first" },
    { channel: "silent-second", status: 200 },
  ]);
});

test.each(["", '{"type":"message",'])(
  "P95: an upstream that falls silent in its JSON body (sent so far: %p) counts as failed",
  async (start) => {
    halting.channel("first").next((_, out) => {
      out.head(200, { "content-type": "application/json", "content-length": "1000" });
      out.write(start);
    });
    const at = performance.now();
    const answer = await halting.ask("messages");
    // The upstream has begun to respond, so no other channel is asked.
    expect([answer.status, halting.channel("second").seen.length]).toEqual([504, 0]);
    expect(await world.line(answer)).toMatchObject({ outcome: "upstream_cut" });
    expect(performance.now() - at).toBeLessThan(10_000);
  },
);

test("P95: a stream may last longer than `idle`, if each silence in the stream is shorter", async () => {
  patient.channel().next(async (_, out) => {
    out.head(200, SSE);
    for (const piece of stream("messages")) {
      out.write(piece);
      await Bun.sleep(400);
    }
    out.end();
  });
  expect((await patient.ask("messages", { stream: true })).text).toBe(stream("messages").join(""));
});

test("P95: an upstream that is silent in a stream for longer than `idle` counts as failed", async () => {
  const [own, group] = await openOwnWorld({}, (own) =>
    own.group("idle", { channels: { main: { timeouts: { idle: "200ms" } } } }),
  );
  group.channel().next(async (_, out) => {
    out.head(200, SSE);
    for (const piece of stream("messages").slice(0, 3)) out.write(piece);
    await out.left;
  });
  const answer = await group.ask("messages", { stream: true });
  expect(answer.text).toContain("event: error");
  expect((await own.line(answer))["outcome"]).toBe("upstream_cut");
});

/** The channel streams `pieces`, and `later` after `go()`. `closed` resolves when the gateway disconnects. */
function leaveAfter(group: Group, pieces: readonly string[], later: readonly string[] = []) {
  const closed = Promise.withResolvers<void>();
  const go = Promise.withResolvers<void>();
  group.channel().next(async (_, out: Out) => {
    out.head(200, SSE);
    for (const piece of pieces) out.write(piece);
    void out.left.then(() => closed.resolve());
    await go.promise;
    for (const piece of later) out.write(piece);
    out.end();
  });
  return { closed: closed.promise, go: go.resolve };
}

describe("P96: when a client leaves, the upstream request ends", () => {
  test.each([...DIALECTS])(
    "when a client leaves, its upstream request ends at once, and the line says so, in %s",
    async (dialect) => {
      const { closed } = leaveAfter(groups[dialect], stream(dialect).slice(0, 1));
      const client = await groups[dialect].open(dialect, { stream: true });
      await client.until((all) => all.includes("\r\n\r\n"));
      const at = performance.now();
      client.close();
      await closed;
      expect(performance.now() - at).toBeLessThan(10_000);
      expect((await lineOf(idOf(client.bytes())))["outcome"]).toBe("client_closed");
    },
  );

  test("when a client leaves before a response has begun, its upstream request ends at once", async () => {
    const left = Promise.withResolvers<void>();
    messages.channel().next((_, out) => out.left.then(left.resolve));
    const before = messages.channel().seen.length;
    const client = await messages.open("messages");
    await messages.channel().got(before + 1);
    client.close();
    await left.promise;
  });

  test("an upstream response that ends within on_disconnect.drain is charged by the usage that it reports", async () => {
    const config = { on_disconnect: { drain: "20s" } };
    const [own, group] = await openOwnWorld({ config }, (own) => own.group("drain"));
    const left = Promise.withResolvers<void>();
    group.channel().next(async (_, out) => {
      out.head(200, SSE);
      for (const piece of stream("messages").slice(0, 3)) out.write(piece);
      await left.promise;
      // While these pings come, the gateway sees that the client has left.
      for (let count = 0; count < 30; count += 1) {
        out.write('event: ping\ndata: {"type":"ping"}\n\n');
        await Bun.sleep(5);
      }
      for (const piece of stream("messages").slice(3)) out.write(piece);
      out.end();
    });
    const client = await group.open("messages", { stream: true });
    await client.until("Hello from upstream");
    client.reset();
    left.resolve();
    const line = await eventually(() => own.lines()[0]);
    expect(line).toMatchObject({ basis: "exact", charge_usd: "0.00142", usage: { output: 300 } });
  });

  test("the upstream request ends after on_disconnect.drain, if the response goes on for longer", async () => {
    const config = { on_disconnect: { drain: "100ms" } };
    const [own, group] = await openOwnWorld({ config }, (own) => own.group("drain"));
    const { closed } = leaveAfter(group, stream("messages").slice(0, 3));
    const client = await group.open("messages", { stream: true });
    await client.until("Hello from upstream");
    const at = performance.now();
    client.close();
    await closed;
    expect(performance.now() - at).toBeWithin(95, 10_000);
    expect(await eventually(() => own.lines()[0])).toMatchObject({
      outcome: "client_closed",
      basis: "partial",
    });
  });
});

describe("P97: a request whose client leaves after the terminal event counts as complete", () => {
  const LAST: Readonly<Record<Dialect, string>> = {
    messages: "message_stop",
    responses: "response.completed",
    chat: "[DONE]",
    content: '"finishReason"',
  };
  test.each([...DIALECTS])(
    "a request in %s whose client leaves after the terminal event has the outcome `complete`",
    async (dialect) => {
      const group = groups[dialect];
      const { closed } = leaveAfter(group, stream(dialect));
      const client = await group.open(dialect, { stream: true });
      await client.until(LAST[dialect]);
      client.reset();
      await closed;
      expect(await lineOf(idOf(client.bytes()))).toMatchObject({
        outcome: "complete",
        charge_usd: "0.00142",
      });
    },
  );

  test("a request whose client leaves after response.incomplete has the outcome `complete`", async () => {
    const pieces = stream("responses").map((piece) =>
      piece.includes("response.completed") ? piece.replaceAll("completed", "incomplete") : piece,
    );
    const { closed } = leaveAfter(responses, pieces);
    const client = await responses.open("responses", { stream: true });
    await client.until("response.incomplete");
    client.reset();
    await closed;
    expect(await lineOf(idOf(client.bytes()))).toMatchObject({ outcome: "complete", charge_usd: "0.00142" });
  });

  test("a request whose client leaves after [DONE] has the outcome `complete`, even if no chunk reports usage", async () => {
    const { closed } = leaveAfter(chats, stream("chat", {}, false));
    const client = await chats.open("chat", { stream: true });
    await client.until("[DONE]");
    client.reset();
    await closed;
    expect(await lineOf(idOf(client.bytes()))).toMatchObject({ outcome: "complete", basis: "partial" });
  });
});

test("P98: a stopping gateway lets running answers finish", async () => {
  const [own, group] = await openOwnWorld({}, (own) => own.group("stop"));
  const { go } = leaveAfter(group, stream("messages").slice(0, 3), stream("messages").slice(3));
  const client = await group.open("messages", { stream: true });
  await client.until("Hello from upstream");
  const stopped = own.halt();
  await eventually(() =>
    group.ask("messages").then(
      (answer) => answer.status !== 200,
      () => true,
    ),
  );
  go();
  await client.until("message_stop");
  expect(await stopped).toBe(0);
  expect(own.lines().find((line) => line["id"] === idOf(client.bytes()))).toMatchObject({
    outcome: "complete",
  });
});

test("P99: a request that an upstream may have worked on is sent again only by failover, and the line lists both attempts", async () => {
  for (let round = 0; round < 3; round += 1) {
    messages.channel().next({ body: whole("messages") });
    expect((await messages.ask("messages")).status).toBe(200);
  }
  const before = messages.channel().seen.length;
  messages.channel().next((_, out) => out.end("reset"));
  const failed = await messages.ask("messages");
  expect(failed.status).toBeGreaterThanOrEqual(500);
  expect(messages.channel().seen).toHaveLength(before + 1);
  pair.channel("first").next((_, out) => out.end("cut"));
  const answer = await pair.ask("messages");
  expect(answer.status).toBe(200);
  expect(pair.channel("first").seen).toHaveLength(1);
  expect(pair.channel("second").seen).toHaveLength(1);
  expect((await world.line(answer))["attempts"]).toMatchObject([
    { channel: "pair-first" },
    { channel: "pair-second", status: 200 },
  ]);
});
