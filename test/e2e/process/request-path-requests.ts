// Sends REQUESTS requests through a gateway. request-path.test.ts counts the lines that they run.

import { expect, test } from "bun:test";
import { startDemoUpstream } from "../../harness/upstreams/demo-upstream.ts";
import { keyOf, makeConfig, startGatewayHere } from "../../harness/gateway.ts";

test("requests are answered", async () => {
  const upstream = startDemoUpstream();
  const gateway = startGatewayHere({ config: makeConfig(upstream) });
  const count = Number(process.env["REQUESTS"]);
  for (let sent = 0; sent < count; sent += 1) {
    const answer = await fetch(`${gateway.url}/v1/messages`, {
      method: "POST",
      headers: { "x-api-key": keyOf("messages"), "content-type": "application/json" },
      body: JSON.stringify({
        model: "claude-haiku-4-5",
        max_tokens: 64,
        messages: [{ role: "user", content: "Hello" }],
      }),
    });
    await answer.text();
    await gateway.recorded(sent + 1);
  }
  expect(gateway.records).toHaveLength(count);
  await gateway.stop();
  upstream.stop();
});
