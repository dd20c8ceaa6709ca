// An agent in a loop is stopped before its next request costs anything, with one line in the log and one alert.

import { expect, test } from "bun:test";
import { keyOf } from "../../harness/gateway.ts";
import { rawRequest } from "../../harness/raw.ts";
import { inWorld } from "../world.ts";

/** A conversation that ends with this many equal calls. */
function writeLoop(times: number): object {
  const calls = Array.from({ length: times }, (_, at) => [
    {
      role: "assistant",
      content: [{ type: "tool_use", id: `call_${at}`, name: "Bash", input: { command: "make" } }],
    },
    { role: "user", content: [{ type: "tool_result", tool_use_id: `call_${at}`, content: "no rule" }] },
  ]);
  const messages = [{ role: "user", content: "Build it." }, ...calls.flat()];
  return { model: "claude-haiku-4-5", max_tokens: 9, messages };
}

test("a loop is refused at its Nth repetition, not before and not after", async () => {
  await inWorld(
    async ({ gateway, upstream }) => {
      const send = (times: number) =>
        rawRequest(gateway.port, {
          target: "/v1/messages",
          fields: { "x-api-key": keyOf("messages"), "x-session-id": "night" },
          body: writeLoop(times),
        });
      for (let times = 0; times < 4; times += 1) {
        // A retry changes nothing.
        expect((await send(times)).status).toBe(200);
        expect((await send(times)).status).toBe(200);
      }
      const refused = await send(4);
      const { error } = JSON.parse(refused.text);
      expect(refused.status).toBe(429);
      expect(refused.field("x-should-retry")).toBe("false");
      expect(error.message).toContain("the same tool call 4 times in a row");
      expect(gateway.records.flatMap(({ problem }) => problem ?? [])).toEqual([error.message]);
      expect((await send(5)).status).toBe(429);
      const holder = { kind: "session", name: "night" } as const;
      expect(await gateway.warned(1)).toEqual([
        { holder, limit: "same_call", count: 4, percent: 100, resets: null },
      ]);
      expect(upstream.requests).toHaveLength(8);
    },
    () => ({
      keys: [{ name: "messages", group: "messages", secret: keyOf("messages"), limits: { same_call: 4 } }],
    }),
  );
});
