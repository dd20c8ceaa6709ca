import { expect, spyOn, test } from "bun:test";
import { checkConfigText } from "../../../src/config/file/load.ts";
import { ModelLists } from "../../../src/gateway/channels/model-list.ts";
import { createClient } from "../../../src/lib/http/client.ts";
import { Fields } from "../../../src/lib/http/fields.ts";
import { type Answer, UpstreamFault } from "../../../src/lib/http/upstream.ts";

test("fetching a list of models ends within half a minute, however many pages it has", async () => {
  const text = `channels: { main: { platform: messages, base_url: "http://127.0.0.1:1", credential: x } }
groups: { claude: { platform: messages, channels: [main] } }
keys: [{ name: laptop, group: claude, secret: sk-laptop }]`;
  const { catalog } = checkConfigText(text, "/x/gateway.yaml", {});
  const { promise, reject } = Promise.withResolvers<Answer>();
  const cancel = () => reject(new UpstreamFault("cancelled", "given up"));
  const body = [Buffer.from('{"data":[{"id":"m1"}],"has_more":true,"last_id":"m1"}')];
  const head = { status: 200, fields: new Fields(), length: null, closeDelimited: false };
  const first = { head, read: () => Promise.resolve(body.shift() ?? null), cancel };
  const send = () => ({ answer: body.length > 0 ? Promise.resolve(first) : promise, cancel });
  const lists = new ModelLists({ ...createClient(), send });
  // Only the list's first look at the clock is changed, so that its half minute is nearly over.
  const clock = spyOn(performance, "now").mockReturnValueOnce(performance.now() - 29_990);
  const listing = lists.ofChannel(catalog.channels.get("main")!);
  clock.mockRestore();
  expect(await listing).toMatchObject({ models: [], problem: "given up" });
});
