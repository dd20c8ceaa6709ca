import { expect, test } from "bun:test";
import { checkConfigText } from "../../../src/config/file/load.ts";
import { createModelLists, fetchListPage } from "../../../src/gateway/channels/model-list.ts";
import { createClient } from "../../../src/lib/http1/client/client.ts";
import type { Deadlines } from "../../../src/lib/http/upstream.ts";

test("a model list that stalls is given up as soon as one that never begins", async () => {
  const config = {
    channels: { a: { platform: "messages", base_url: "http://127.0.0.1:1", credential: "c" } },
  };
  const { catalog } = checkConfigText(JSON.stringify(config), "/nonexistent/gateway.yaml", {});
  const client = createClient();
  const asked: Deadlines[] = [];
  const watched = {
    ...client,
    send: (...[request, listener]: Parameters<typeof client.send>) => {
      asked.push(request.deadlines);
      return client.send(request, listener);
    },
  };
  await fetchListPage(watched, catalog.channels.get("a")!, "").catch(() => {});
  client.close();
  expect(asked).toMatchObject([{ firstByteMs: 10_000, idleMs: 10_000 }]);
});

test("if `models` filters out the whole list, the exact names in it count", async () => {
  using upstream = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch: () => Response.json({ data: [{ id: "another", type: "model" }] }),
  });
  const a = { platform: "messages", base_url: upstream.url.origin, credential: "c", models: ["m", "n-*"] };
  const { catalog } = checkConfigText(JSON.stringify({ channels: { a } }), "/nonexistent/gateway.yaml", {});
  const client = createClient();
  const { models, problem } = await createModelLists(client).ofChannel(catalog.channels.get("a")!);
  client.close();
  expect([models.map(({ id }) => id), problem]).toEqual([["m"], null]);
});
