// `otlp:` sends spans in batches. No request waits for a receiver that is away, and no span is lost.

import { expect, onTestFinished, test } from "bun:test";
import { eventually, openOwnWorld } from "../../promises/world/world.ts";

interface Traces {
  readonly resourceSpans: readonly {
    readonly scopeSpans: readonly { readonly spans: readonly { readonly spanId: string }[] }[];
  }[];
}

const REQUESTS = 60;

test("spans wait for a receiver that is away, and then come in batches of fifty, each span once", async () => {
  const batches: string[][] = [];
  const open = (port: number) =>
    Bun.serve({
      hostname: "127.0.0.1",
      port,
      fetch: async (request) => {
        const body: Traces = JSON.parse(await request.text());
        const scopes = body.resourceSpans.flatMap(({ scopeSpans }) => scopeSpans);
        batches.push(scopes.flatMap(({ spans }) => spans.map(({ spanId }) => spanId)));
        return Response.json({});
      },
    });
  const first = open(0);
  const port = first.port!;
  await first.stop(true);
  const config = { otlp: { url: `http://127.0.0.1:${port}/v1/traces` } };
  const [world, plain] = await openOwnWorld({ config }, (own) => own.group("plain"));
  for (let count = 0; count < REQUESTS; count += 1) expect((await plain.ask("messages")).status).toBe(200);
  await eventually(() => world.log().includes("otlp: the receiver is away"));
  const receiver = open(port);
  onTestFinished(() => receiver.stop(true));
  await eventually(() => batches.flat().length >= REQUESTS);
  await eventually(() => world.log().includes("otlp: spans wait no longer"));
  expect(batches.map(({ length }) => length)).toEqual([50, REQUESTS - 50]);
  expect(new Set(batches.flat()).size).toBe(REQUESTS);
  await receiver.stop(true);
  await plain.ask("messages");
  expect(await world.halt()).toBe(0);
}, 30_000);
