import { expect, test } from "bun:test";
import { networkInterfaces } from "node:os";
import { checkConfigText } from "../../../src/config/file/load.ts";
import { fetchWhole } from "../../../src/gateway/upstream/fetch.ts";
import { addressOf } from "../../../src/gateway/upstream/origin.ts";
import { createClient } from "../../../src/lib/http1/client/client.ts";

const hasIpv6 = Object.values(networkInterfaces()).some((list) =>
  list?.some(({ address }) => address === "::1"),
);

test.skipIf(!hasIpv6)("an upstream at an IPv6 address is named as URLs name it", async () => {
  const server = Bun.serve({
    hostname: "::1",
    port: 0,
    fetch: (request) => new Response(request.headers.get("host")),
  });
  const client = createClient();
  try {
    const config = {
      channels: { a: { platform: "messages", base_url: `http://[::1]:${server.port}/x/`, credential: "c" } },
    };
    const { catalog } = checkConfigText(JSON.stringify(config), "/nonexistent/gateway.yaml", {});
    const { origin, basePath, deadlines } = addressOf(catalog.channels.get("a")!);
    const request = { origin, method: "GET", target: basePath, fields: [], body: null, deadlines };
    const { body } = await fetchWhole(client, request, 1000);
    expect(Buffer.from(body).toString()).toBe(`[::1]:${server.port}`);
  } finally {
    client.close();
    await server.stop(true);
  }
});
