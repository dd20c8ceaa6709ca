// The harness itself: it starts the real gateway, sends requests, and cleans up.

import { existsSync } from "node:fs";
import { expect, test } from "bun:test";
import { startDemoUpstream } from "./upstreams/demo-upstream.ts";
import { CREDENTIAL, keyOf, makeConfig, startGateway, startGatewayHere } from "./gateway.ts";
import { rawRequest } from "./raw.ts";

const BODY = { model: "claude-haiku-4-5", max_tokens: 50, messages: [{ role: "user", content: "Hello" }] };
const ASK = { target: "/v1/messages", fields: { "x-api-key": keyOf("messages") }, body: BODY };

test("a child process serves, reports its requests, and leaves nothing behind", async () => {
  const upstream = startDemoUpstream({ credential: CREDENTIAL });
  const gateway = await startGateway({ config: makeConfig(upstream) });
  const answer = await rawRequest(gateway.port, ASK);
  expect(answer.text).toContain('You said: \\"Hello\\"');
  const [record] = await gateway.recorded(1);
  expect(record).toMatchObject({ key: "messages", channel: "messages", status: 200 });
  expect(await gateway.stop()).toBe(0);
  expect(existsSync(gateway.folder.path)).toBe(false);
  upstream.stop();
});

test("the gateway of this process serves the same", async () => {
  const upstream = startDemoUpstream({ credential: CREDENTIAL });
  const gateway = startGatewayHere({ config: makeConfig(upstream) });
  const answer = await rawRequest(gateway.port, ASK);
  expect(answer.text).toContain('You said: \\"Hello\\"');
  expect(await gateway.recorded(1)).toHaveLength(1);
  await gateway.stop();
  upstream.stop();
});

test("a gateway that cannot start says why", async () => {
  const failed = await startGateway({ config: "channels: [" }).catch((error: Error) => error.message);
  expect(failed).toContain("gateway.yaml");
});
