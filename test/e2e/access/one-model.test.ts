// A second model under another spelling of `model`, which only some parsers see.

import { expect, test } from "bun:test";
import { CREDENTIAL } from "../../harness/gateway.ts";
import { makeRequest, openWorld, PLATFORMS } from "../world.ts";

const listed = (url: string) => ({
  channels: Object.fromEntries(
    PLATFORMS.map((platform) => [
      platform,
      { platform, base_url: url, credential: CREDENTIAL, models: ["claude-*"] },
    ]),
  ),
});

test.each([
  ["is refused where a `models` list depends on it", listed, 400],
  ["passes where nothing depends on it", () => ({}), 200],
] as const)("a second model %s", async (_, config, status) => {
  const world = openWorld(config);
  const { fields = {}, target } = makeRequest("messages");
  const body = '{"model":"claude-haiku-4-5","Model":"expensive","max_tokens":9,"messages":[]}';
  const answer = await world.ask({ target, fields, body });
  expect([answer.status, world.upstream.requests.length]).toEqual([status, status === 200 ? 1 : 0]);
  if (status === 400) expect(JSON.parse(answer.text).error.message).toContain("different spellings");
  await world.stop();
});
