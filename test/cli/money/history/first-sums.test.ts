// The first sums of somebody new: what agents have written before there was a gateway, also in older and rewritten forms.

import { expect, test } from "bun:test";
import { CLAUDE, claudeRow, CODEX, codexRows, makeHome } from "../../../billing/history/made-logs.ts";
import { runProcess } from "../../driving.ts";

const { meta, count } = codexRows;

async function readTotal(files: Parameters<typeof makeHome>[0]): Promise<unknown> {
  const home = makeHome(files);
  const env = { HOME: home, GATEWAY_CONFIG: "", TZ: "UTC" };
  const { stdout } = await runProcess({ folder: home, env }, "usage", "--history", "--json");
  const { requests, usage } = JSON.parse(stdout).total;
  return { requests, usage };
}

/** As Python's json.dumps writes it. */
function withSpaces(rows: readonly object[]): string {
  return rows
    .map((row) => `${JSON.stringify(row).replaceAll('":', '": ').replaceAll(',"', ', "')}\n`)
    .join("");
}

test("a fork of a Codex without turn ids counts its parent's responses once", async () => {
  const context = {
    timestamp: "2026-11-20T10:00:00.000Z",
    type: "turn_context",
    payload: { model: "gpt-5.5" },
  };
  const parent = [context, count([100, 0, 10], [100, 0, 10]), count([150, 0, 15], [50, 0, 5])];
  const fork = [meta("t2", { forked_from_id: "t1" }), meta("t1"), ...parent, count([180, 0, 22], [30, 0, 7])];
  expect(
    await readTotal({ [`${CODEX}/a.jsonl`]: [meta("t1"), ...parent], [`${CODEX}/b.jsonl`]: fork }),
  ).toEqual({ requests: 3, usage: { input: 180, output: 22 } });
});

test("logs with spaces in their JSON count like those without", async () => {
  const chat = [
    { sessionId: "s1", startTime: "2026-11-20T10:00:00.000Z" },
    {
      id: "m1",
      type: "gemini",
      timestamp: "2026-11-20T10:00:00.000Z",
      model: "gemini-2.5-pro",
      tokens: { input: 7, output: 2, cached: 0, thoughts: 0, tool: 0, total: 9 },
    },
  ];
  expect(
    await readTotal({
      [`${CLAUDE}/a.jsonl`]: withSpaces([claudeRow()]),
      [".gemini/tmp/hash/chats/session-1.jsonl"]: withSpaces(chat),
    }),
  ).toEqual({ requests: 2, usage: { input: 10, cache_read: 100, output: 22 } });
});
