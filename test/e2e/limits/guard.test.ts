// An agent in a loop is stopped before its next request costs anything, with one line in the log and one alert.

import { expect, test } from "bun:test";
import type { Platform } from "../../../src/config/schema.ts";
import { startDemoUpstream } from "../../../src/demo/upstream.ts";
import { keyOf, makeConfig, startGatewayHere } from "../../harness/gateway.ts";
import { rawRequest } from "../../harness/raw.ts";

type Value = Record<string, unknown>;

interface Talk {
  readonly platform: Platform;
  readonly target: string;
  readonly field: string;
  readonly write: (times: number) => Value;
}

function repeat(times: number, make: (id: string) => Value[]): Value[] {
  return Array.from({ length: times }, (_, at) => make(`call_${at}`)).flat();
}

const TALKS: readonly Talk[] = [
  {
    platform: "messages",
    target: "/v1/messages",
    field: "x-api-key",
    write: (times) => ({
      model: "claude-haiku-4-5",
      max_tokens: 9,
      messages: [
        { role: "user", content: "Build it." },
        ...repeat(times, (id) => [
          {
            role: "assistant",
            content: [{ type: "tool_use", id, name: "Bash", input: { command: "make" } }],
          },
          { role: "user", content: [{ type: "tool_result", tool_use_id: id, content: "no rule" }] },
        ]),
      ],
    }),
  },
  {
    platform: "responses",
    target: "/v1/responses",
    field: "authorization",
    write: (times) => ({
      model: "gpt-5.4",
      input: [
        { role: "user", content: "Build it." },
        ...repeat(times, (id) => [
          { type: "function_call", call_id: id, name: "shell", arguments: "{}" },
          { type: "function_call_output", call_id: id, output: "no rule" },
        ]),
      ],
    }),
  },
  {
    platform: "responses",
    target: "/v1/chat/completions",
    field: "authorization",
    write: (times) => ({
      model: "gpt-5.4",
      messages: [
        { role: "user", content: "Build it." },
        ...repeat(times, (id) => [
          {
            role: "assistant",
            tool_calls: [{ id, type: "function", function: { name: "shell", arguments: "{}" } }],
          },
          { role: "tool", tool_call_id: id, content: "no rule" },
        ]),
      ],
    }),
  },
  {
    platform: "content",
    target: "/v1beta/models/gemini-2.5-pro:generateContent",
    field: "x-goog-api-key",
    write: (times) => ({
      contents: [
        { role: "user", parts: [{ text: "Build it." }] },
        ...repeat(times, () => [
          { role: "model", parts: [{ functionCall: { name: "shell", args: {} } }] },
          { role: "user", parts: [{ functionResponse: { name: "shell", response: { output: "no rule" } } }] },
        ]),
      ],
    }),
  },
];

function limited(url: string, limits: Value): Value {
  const config = makeConfig({ url });
  return { ...config, keys: config.keys.map((key) => ({ ...key, limits })) };
}

test.each(TALKS.map((talk) => [talk.target, talk] as const))(
  "a loop is refused at its Nth repetition, not before and not after: %s",
  async (_, { platform, target, field, write }) => {
    const upstream = startDemoUpstream();
    const gateway = startGatewayHere({ config: limited(upstream.url, { same_call: 4 }) });
    const send = (times: number) =>
      rawRequest(gateway.port, {
        method: "POST",
        target,
        fields: {
          [field]: field === "authorization" ? `Bearer ${keyOf(platform)}` : keyOf(platform),
          "x-session-id": "night",
        },
        body: JSON.stringify(write(times)),
      });
    try {
      for (let times = 0; times < 4; times += 1) {
        // A retry changes nothing.
        expect((await send(times)).status).toBe(200);
        expect((await send(times)).status).toBe(200);
      }
      const refused = await send(4);
      const { error } = JSON.parse(refused.body.toString());
      expect(refused.status).toBe(429);
      expect(refused.field("x-should-retry")).toBe("false");
      expect(error.message).toContain("the same tool call 4 times in a row");
      expect(gateway.records.flatMap(({ problem }) => problem ?? [])).toEqual([error.message]);
      expect((await send(5)).status).toBe(429);
      expect(await gateway.warned(1)).toEqual([
        {
          holder: { kind: "session", name: "night" },
          limit: "same_call",
          count: 4,
          percent: 100,
          resets: null,
        },
      ]);
      expect(upstream.requests).toHaveLength(8);
    } finally {
      await gateway.stop();
      upstream.stop();
    }
  },
);
