import { describe, expect, test } from "bun:test";
import { CLAUDE, claudeRow, PROJECT, readEntries, usages } from "./made-logs.ts";

const usage = (output_tokens: number): Record<string, number> => ({
  input_tokens: 3,
  cache_read_input_tokens: 100,
  cache_creation_input_tokens: 0,
  output_tokens,
});

describe("P52: answers of Claude Code are read from its logs, and each counts once", () => {
  test("the rows of one answer count once, by the row with the most output", () => {
    const rows = [1, 20, 15].map((output) =>
      claudeRow({ usage: usage(output), stop_reason: output < 20 ? null : "end_turn" }),
    );
    const [entry, ...others] = readEntries({ [`${CLAUDE}/a.jsonl`]: rows });
    expect(others).toEqual([]);
    expect(entry).toMatchObject({
      tool: "claude-code",
      requestId: "req_msg_1",
      project: PROJECT,
      model: "claude-opus-4-5",
      basis: "exact",
      usage: { input: 3, cache_read: 100, output: 20 },
    });
  });

  test("the usage of an answer is partial if its last row was written before the answer ended", () => {
    const rows = [claudeRow({ usage: usage(1), stop_reason: null })];
    expect(readEntries({ [`${CLAUDE}/a.jsonl`]: rows }).map(({ basis }) => basis)).toEqual(["partial"]);
  });

  test("a subagent's answers belong to the session if its log is in the session's folder or next to the session's file", () => {
    const sub = claudeRow({ id: "msg_2", agentId: "a1", isSidechain: true });
    const entries = readEntries({
      [`${CLAUDE}/a.jsonl`]: [claudeRow()],
      [`${CLAUDE}/a/subagents/agent-a1.jsonl`]: [sub],
      [`${CLAUDE}/agent-a2.jsonl`]: [claudeRow({ id: "msg_3", agentId: "a2" })],
    });
    expect(new Set(entries.map(({ agent }) => agent))).toEqual(new Set([undefined, "a1", "a2"]));
    expect(new Set(entries.map(({ session }) => session)).size).toBe(1);
  });

  test("answers that a fork repeats count once, for its parent", () => {
    const own = claudeRow({ id: "msg_2", sessionId: "fork" });
    const entries = readEntries({
      [`${CLAUDE}/fork.jsonl`]: [claudeRow({ sessionId: "fork", requestSessionId: "parent" }), own],
      [`${CLAUDE}/parent.jsonl`]: [claudeRow({ sessionId: "parent" })],
    });
    expect(entries.map(({ session, requestId }) => [session, requestId])).toEqual([
      ["parent", "req_msg_1"],
      ["fork", "req_msg_2"],
    ]);
  });

  test("cache writes for an hour and for five minutes are counted as two kinds", () => {
    const written = {
      cache_creation_input_tokens: 30,
      cache_creation: { ephemeral_5m_input_tokens: 10, ephemeral_1h_input_tokens: 20 },
    };
    const rows = [claudeRow({ usage: { ...usage(5), ...written } })];
    expect(usages(readEntries({ [`${CLAUDE}/a.jsonl`]: rows }))).toEqual([
      { input: 3, cache_read: 100, cache_write_5m: 10, cache_write_1h: 20, output: 5 },
    ]);
  });

  test("an answer's service tier, speed and region are read from the log", () => {
    const served = { ...usage(5), service_tier: "priority", speed: "fast", inference_geo: "us" };
    const [entry] = readEntries({ [`${CLAUDE}/a.jsonl`]: [claudeRow({ usage: served })] });
    expect(entry?.tariff).toEqual({ service_tier: "priority", speed: "fast", inference_geo: "us" });
  });

  test.each([
    ["a message that Claude Code wrote itself", claudeRow({ model: "<synthetic>", usage: usage(9) })],
    [
      "a tool's result with the usage of a subagent",
      { ...claudeRow(), type: "user", toolUseResult: { usage: usage(9) } },
    ],
    ["the progress of a subagent", { type: "progress", data: { message: claudeRow() } }],
    ["text that looks like a row", { type: "user", message: { content: JSON.stringify(claudeRow()) } }],
  ])("%s is not counted as an answer", (_, row) => {
    expect(readEntries({ [`${CLAUDE}/a.jsonl`]: [row] })).toEqual([]);
  });
});
