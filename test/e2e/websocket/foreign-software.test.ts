// Tests WebSockets with foreign software on both sides: the npm package `ws` under Node, and the official SDK's client.

import { describe, expect, onTestFinished, test } from "bun:test";
import { OpenAI } from "openai";
import { z } from "zod";
import { ResponsesWS } from "openai/resources/responses/ws";
import { join } from "node:path";
import { CREDENTIAL, type InsideGateway, keyOf, startGatewayHere } from "../../harness/gateway.ts";
import { startSocketUpstream } from "../../harness/web-socket.ts";
import { flushLedger } from "../world.ts";

const KEY = keyOf("responses");
const NODE = Bun.which("node");

function startGateway(baseUrl: string): InsideGateway {
  const gateway = startGatewayHere({
    config: {
      channels: { main: { platform: "responses", base_url: baseUrl, credential: CREDENTIAL } },
      groups: { responses: { platform: "responses", channels: ["main"] } },
      keys: [{ name: "responses", group: "responses", secret: KEY }],
    },
  });
  onTestFinished(() => gateway.stop());
  return gateway;
}

async function startNodeUpstream() {
  const child = Bun.spawn([NODE ?? "node", join(import.meta.dir, "node-upstream.mjs")], {
    stdin: "pipe",
    stdout: "pipe",
  });
  onTestFinished(() => child.kill());
  const lines = readLines(child.stdout);
  const port = Number((await lines.next()).value);
  const finish = async (): Promise<{ received: string[]; faults: string[] }> => {
    await child.stdin.end();
    return JSON.parse((await lines.next()).value ?? "null");
  };
  return { port, finish };
}

async function* readLines(stream: ReadableStream<Uint8Array>): AsyncGenerator<string, string> {
  let text = "";
  const decoder = new TextDecoder();
  for await (const chunk of stream) {
    text += decoder.decode(chunk, { stream: true });
    for (let end = text.indexOf("\n"); end >= 0; end = text.indexOf("\n")) {
      yield text.slice(0, end);
      text = text.slice(end + 1);
    }
  }
  return text;
}

const clientResult = z.object({
  whole: z.number(),
  broken: z.number(),
  left: z.number(),
  foreign: z.array(z.string()),
  errors: z.array(z.string()),
  deflated: z.number(),
});

async function runNodeClients(port: number, connections: number, responses: number) {
  const url = `ws://127.0.0.1:${port}/v1/responses`;
  const command = [
    NODE ?? "node",
    join(import.meta.dir, "node-client.mjs"),
    url,
    KEY,
    connections,
    responses,
  ];
  const child = Bun.spawn(command.map(String), { stdout: "pipe" });
  onTestFinished(() => child.kill());
  return clientResult.parse(JSON.parse(await new Response(child.stdout).text()));
}

describe.skipIf(NODE === null)("the npm package ws under Node works with the gateway", () => {
  test("P171: of 1000 responses on 50 connections, each has one line and only its own messages", async () => {
    const upstream = await startNodeUpstream();
    const gateway = startGateway(`http://127.0.0.1:${upstream.port}/v1`);
    const result = await runNodeClients(gateway.port, 50, 20);
    expect(result).toMatchObject({ foreign: [], errors: [], deflated: 0 });
    const { whole, broken, left } = result;
    expect(whole + broken + left).toBe(1000);
    for (const count of [whole, broken, left]) expect(count).toBeGreaterThan(100);
    await gateway.running.stop(60_000);
    const { received, faults } = await upstream.finish();
    expect(faults).toEqual([]);
    const lines = gateway.ledger();
    expect(lines.map(({ model }) => String(model)).toSorted()).toEqual(received.toSorted());
    const outcomes = Map.groupBy(
      lines,
      ({ model }) => /-(reset|close|leave)$/.exec(String(model))?.[1] ?? "whole",
    );
    const namesOf = (how: string): unknown[] => [
      ...new Set(outcomes.get(how)?.map(({ outcome }) => outcome)),
    ];
    expect(namesOf("whole")).toEqual(["complete"]);
    expect(namesOf("reset")).toEqual(["upstream_cut"]);
    expect(namesOf("close")).toEqual(["upstream_cut"]);
    expect(namesOf("leave")).toEqual(["client_closed"]);
  });
});

describe("the official SDK's WebSocket client works with the gateway", () => {
  test("the official SDK's WebSocket client runs responses one after another on one connection", async () => {
    const upstream = startSocketUpstream();
    onTestFinished(() => upstream.stop());
    const gateway = startGateway(upstream.url);
    const client = new OpenAI({ apiKey: KEY, baseURL: `http://127.0.0.1:${gateway.port}/v1` });
    const socket = new ResponsesWS(client);
    onTestFinished(() => socket.close());
    for (const time of [1, 2, 3]) {
      const done = Promise.withResolvers<string>();
      socket.on("response.completed", ({ response }) => done.resolve(response.status ?? ""));
      socket.on("error", (error) => done.reject(error));
      socket.send({ type: "response.create", model: "gpt-5.4", input: `Hello ${time}` });
      expect(await done.promise).toBe("completed");
    }
    await gateway.recorded(3);
    await flushLedger();
    expect(gateway.ledger()).toHaveLength(3);
    expect(gateway.ledger().every(({ basis }) => basis === "exact")).toBe(true);
  });
});
