// Embeddings of the responses platform: the bytes pass unread, and each request has one exact line.

import { describe, expect, test } from "bun:test";
import { once } from "node:events";
import { createServer } from "node:net";

import { keyOf, makeConfig, startGatewayHere } from "../../harness/gateway.ts";
import { rawRequest } from "../../harness/raw.ts";

const MODEL = "text-embedding-3-small";
const USAGE = { prompt_tokens: 1_000, total_tokens: 1_000 };
/** Of 1,000 tokens at $0.02 per million. */
const CHARGE = "0.00002";

interface Setting {
  /** The whole response, with its head, or as much as comes before the connection ends. */
  readonly response: string;
  readonly limits?: Readonly<Record<string, string | boolean>>;
}

/** An upstream that writes these bytes for each request, and ends the connection. */
async function withGateway(
  { response, limits }: Setting,
  use: (gateway: ReturnType<typeof startGatewayHere>, received: string[]) => Promise<void>,
): Promise<void> {
  const received: string[] = [];
  const upstream = createServer((socket) => {
    socket.on("error", () => socket.destroy());
    socket.on("data", (chunk) => {
      received.push(chunk.toString());
      if (received.join("").endsWith("}")) socket.end(response);
    });
  });
  upstream.listen(0, "127.0.0.1");
  await once(upstream, "listening");
  const address = upstream.address();
  if (address === null || typeof address === "string") throw new Error("not listening");
  const config = makeConfig({ url: `http://127.0.0.1:${address.port}` });
  const keys = config.keys.map((key) => (limits === undefined ? key : { ...key, limits }));
  const gateway = startGatewayHere({ config: { ...config, keys } });
  try {
    await use(gateway, received);
  } finally {
    await gateway.stop();
    upstream.close();
  }
}

const respond = (body: string, length = body.length): string =>
  `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: ${length}\r\nconnection: close\r\n\r\n${body}`;

const ask = (port: number, body: string) =>
  rawRequest(port, {
    target: "/v1/embeddings",
    fields: { authorization: `Bearer ${keyOf("responses")}`, "content-type": "application/json" },
    body,
  });

const REQUEST = `{ "model":"${MODEL}","input" : ["Hello", "you"],"encoding_format":"float" }`;
const formBody = (data: string, usage: string): string =>
  `{\n  "object": "list", "data": [${data}],\n  "model":"${MODEL}",\n  "usage": ${usage}}\n`;
const vector = `{"object":"embedding","index":0,"embedding":[${"-0.0069292834,".repeat(1_535)}1e-7]}`;
const packed = `{"object":"embedding","index":0,"embedding":"${"A".repeat(8_192)}"}`;

describe("an embedding", () => {
  test.each([
    ["as numbers", vector],
    ["in base64", packed],
    // Larger than what is read as a whole before it is sent.
    ["of many texts", Array.from({ length: 300 }, () => vector).join(",")],
  ])("an embedding %s passes byte for byte, and has one exact line", async (_, data) => {
    const body = formBody(data, JSON.stringify(USAGE));
    await withGateway({ response: respond(body) }, async (gateway, received) => {
      const answer = await ask(gateway.port, REQUEST);
      expect(answer.status).toBe(200);
      expect(answer.text === body).toBe(true);
      expect(received.join("")).toEndWith(REQUEST);
      await gateway.recorded(1);
      expect(gateway.ledger()).toHaveLength(1);
      expect(gateway.ledger()[0]).toMatchObject({
        endpoint: "/v1/embeddings",
        model: MODEL,
        outcome: "complete",
        basis: "exact",
        usage: { input: 1_000, output: 0 },
        raw_usage: USAGE,
        charge_usd: CHARGE,
      });
      expect(gateway.ledger()[0]).not.toHaveProperty("suspect");
    });
  });

  test.each([
    ["without usage", "null"],
    ["with a count that cannot be read", '{"prompt_tokens":"8","total_tokens":8}'],
    ["of no tokens", '{"prompt_tokens":0,"total_tokens":0}'],
  ])("an embedding %s is unknown, says why, and limits count its prompt", async (_, usage) => {
    const limits = { usd_per_day: "1" };
    await withGateway({ response: respond(formBody(vector, usage)), limits }, async (gateway) => {
      expect((await ask(gateway.port, REQUEST)).status).toBe(200);
      await gateway.recorded(1);
      expect(gateway.ledger()[0]).toMatchObject({
        basis: "unknown",
        charge_usd: null,
        suspect: expect.any(String),
        // Of its size: 23 tokens.
        limit_usd: "0.00000046",
      });
    });
  });

  test("an embedding that breaks off is unknown, and its vectors are no output", async () => {
    const limits = { usd_per_day: "1" };
    const body = formBody(vector, JSON.stringify(USAGE)).slice(0, 10_000);
    await withGateway({ response: respond(body, 50_000), limits }, async (gateway) => {
      expect((await ask(gateway.port, REQUEST)).status).toBe(502);
      await gateway.recorded(1);
      // Limits count its prompt: about 23 tokens.
      expect(gateway.ledger()[0]).toMatchObject({
        basis: "unknown",
        outcome: "upstream_cut",
        charge_usd: null,
      });
      expect(Number(gateway.ledger()[0]?.["limit_usd"])).toBeLessThan(0.000001);
    });
  });
});
