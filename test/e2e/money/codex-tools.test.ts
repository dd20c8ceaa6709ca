// Codex has tools for searches and pictures. Their endpoints need a group whose channels are all at OpenAI.
// In these tests the simulated upstream is the proxy of such a channel, so that nothing leaves the machine.

import { describe, expect, onTestFinished, test } from "bun:test";
import { startDemoUpstream, type DemoUpstream } from "../../harness/upstreams/demo-upstream.ts";
import { openSearchMeter } from "../../../src/dialects/meters/calls.ts";
import {
  CREDENTIAL,
  type InsideGateway,
  keyOf,
  makeConfig,
  startGatewayHere,
} from "../../harness/gateway.ts";
import { type Exchanged, rawRequest } from "../../harness/raw.ts";
import { flushLedger } from "../world.ts";

const CLIENT = { authorization: `Bearer ${keyOf("responses")}`, "user-agent": "codex_exec/0.169.0" };
/** Codex names the session in one header of requests for responses, and in another header of searches. */
const SESSION = { session_id: "01a206a0-f3b5-7601-8ce8-0f7ee199a009" };
const KEY = { ...CLIENT, "x-codex-turn-metadata": JSON.stringify(SESSION) };
const SEARCH = '{ "model":"gpt-5.4","id":"s1", "commands":{"search_query":[{"q":"hello"}]},"input":[] }';
const PICTURE = { model: "gpt-image-2", prompt: "a grey pixel" };

function openUpstream(): DemoUpstream {
  const upstream = startDemoUpstream({ credential: CREDENTIAL });
  onTestFinished(() => upstream.stop());
  return upstream;
}

const atOpenai = (upstream: DemoUpstream) => ({
  platform: "responses",
  base_url: "http://api.openai.com/v1",
  proxy: upstream.url,
  credential: CREDENTIAL,
});

interface Setting {
  readonly channels: Readonly<Record<string, object>>;
  readonly limits?: object;
  readonly prices?: object;
}

function openGateway({ channels, limits, prices }: Setting): InsideGateway {
  const config = makeConfig({ url: "http://127.0.0.1:1" });
  const gateway = startGatewayHere({
    config: {
      ...config,
      channels: { ...config.channels, ...channels },
      groups: {
        ...config.groups,
        responses: {
          platform: "responses",
          channels: Object.keys(channels),
          ...(limits !== undefined && { limits }),
        },
      },
      ...(prices !== undefined && { prices }),
    },
  });
  onTestFinished(() => gateway.stop());
  return gateway;
}

const post = (gateway: InsideGateway, target: string, body: string | object): Promise<Exchanged> =>
  rawRequest(gateway.port, { target, fields: { ...KEY, "content-type": "application/json" }, body });

async function lineOf(gateway: InsideGateway, count = 1): Promise<Record<string, unknown>> {
  await gateway.recorded(count);
  await flushLedger();
  return gateway.ledger().at(-1) ?? {};
}

describe("P60: a search of Codex is forwarded and billed", () => {
  test("a search of Codex goes to OpenAI's own address byte for byte, and its line has no price", async () => {
    const upstream = openUpstream();
    const gateway = openGateway({ channels: { openai: atOpenai(upstream) } });
    const answer = await post(gateway, "/v1/alpha/search", SEARCH);
    expect([answer.status, JSON.parse(answer.body.toString())]).toEqual([
      200,
      { output: expect.any(String), results: [] },
    ]);
    const [received] = upstream.requests;
    expect(received?.body.toString()).toBe(SEARCH);
    expect(received?.target).toEndWith("api.openai.com/v1/alpha/search");
    const line = await lineOf(gateway);
    expect(line).toMatchObject({
      endpoint: "/v1/alpha/search",
      model: "gpt-5.4",
      upstream_model: "codex-search",
      usage: { call: 1 },
      basis: "unpriced",
      unpriced_because: "no price for codex-search",
      charge_usd: null,
    });
    expect([line["suspect"], line["priced_as"]]).toEqual([undefined, undefined]);
  });

  test("a search of Codex costs what the config says, also under a limit in USD", async () => {
    const gateway = openGateway({
      channels: { openai: atOpenai(openUpstream()) },
      limits: { usd_per_day: "1" },
      prices: { "codex-search": { call_per_1k: "10" } },
    });
    expect((await post(gateway, "/v1/alpha/search", SEARCH)).status).toBe(200);
    expect(await lineOf(gateway)).toMatchObject({
      basis: "exact",
      price_source: "config",
      prices: { call_per_1k: "10" },
      official_usd: "0.01",
      charge_usd: "0.01",
    });
  });

  test("under a limit in USD, a search of Codex without a price is refused, unless the limit says `unpriced: allow`", async () => {
    const upstream = openUpstream();
    const channels = { openai: atOpenai(upstream) };
    const refused = await post(
      openGateway({ channels, limits: { usd_per_day: "1" } }),
      "/v1/alpha/search",
      SEARCH,
    );
    expect([refused.status, refused.body.toString()]).toEqual([
      403,
      expect.stringContaining('\\"codex-search\\" has no price'),
    ]);
    expect(upstream.requests).toHaveLength(0);
    const allowed = openGateway({ channels, limits: { usd_per_day: "1", unpriced: "allow" } });
    expect((await post(allowed, "/v1/alpha/search", SEARCH)).status).toBe(200);
  });

  test("a search of Codex gets 404 if a channel of the group is not at OpenAI, or if the key has another platform", async () => {
    const upstream = openUpstream();
    const elsewhere = { platform: "responses", base_url: upstream.url, credential: CREDENTIAL };
    const gateway = openGateway({ channels: { openai: atOpenai(upstream), other: elsewhere } });
    for (const target of ["/v1/alpha/search", "/v1/images/generations", "/v1/images/edits"]) {
      const answer = await post(gateway, target, SEARCH);
      expect([target, answer.status, answer.body.toString()]).toEqual([
        target,
        404,
        expect.stringContaining("Unknown path"),
      ]);
      const foreign = await rawRequest(gateway.port, {
        target,
        fields: { authorization: `Bearer ${keyOf("messages")}` },
        body: SEARCH,
      });
      expect(foreign.status).toBe(404);
    }
    expect(upstream.requests).toHaveLength(0);
  });

  test("a search of Codex goes to the channel that served the session's last response, and does not move the session", async () => {
    const [one, two] = [openUpstream(), openUpstream()];
    const gateway = openGateway({
      channels: { one: { ...atOpenai(one), priority: 1 }, two: { ...atOpenai(two), priority: 1 } },
    });
    const ask = () =>
      rawRequest(gateway.port, {
        target: "/v1/responses",
        fields: { ...CLIENT, "session-id": SESSION.session_id },
        body: { model: "gpt-5.4", input: "Hello" },
      });
    await ask();
    const [home, other] = one.requests.length === 1 ? [one, two] : [two, one];
    for (let turn = 0; turn < 4; turn += 1) {
      await post(gateway, "/v1/alpha/search", SEARCH);
      await post(gateway, "/v1/images/generations", PICTURE);
    }
    await ask();
    expect([home.requests.length, other.requests.length]).toEqual([10, 0]);
  });

  test("a search of Codex is metered by the tokens that its answer reports, or else as one call", () => {
    const read = (body: string) => {
      const meter = openSearchMeter("application/json");
      meter.see(Buffer.from(body));
      const { model, parts, final } = meter.read();
      return { model, usage: parts[0]?.usage, final };
    };
    expect(read('{"output":"text"}')).toEqual({ model: "codex-search", usage: { call: 1 }, final: true });
    expect(read('{"output":"text","model":"gpt-5.4","usage":{"input_tokens":7,"output_tokens":3}}')).toEqual({
      model: "gpt-5.4",
      usage: { input: 7, output: 3 },
      final: true,
    });
    expect(read('{"output":"te').final).toBe(false);
  });
});

test.each(["generations", "edits"])(
  "P60: pictures that Codex asks for at /v1/images/%s are charged by the tokens that the answer reports",
  async (kind) => {
    const gateway = openGateway({ channels: { openai: atOpenai(openUpstream()) } });
    const images = kind === "edits" ? { images: [{ image_url: "data:image/png;base64,AAAA" }] } : {};
    const answer = await post(gateway, `/v1/images/${kind}`, { ...PICTURE, ...images });
    expect(answer.status).toBe(200);
    const { usage } = JSON.parse(answer.body.toString());
    const [text, seen] = [usage.input_tokens_details.text_tokens, usage.input_tokens_details.image_tokens];
    expect(await lineOf(gateway)).toMatchObject({
      endpoint: `/v1/images/${kind}`,
      basis: "exact",
      usage: { input: text, output: 272, ...(seen > 0 && { input_image: seen }) },
      // A million tokens of gpt-image-2 cost $5 for text, $8 for pictures and $30 for output.
      official_usd: String(Number(((text * 5 + seen * 8 + 272 * 30) / 1e6).toFixed(9))),
    });
  },
);
