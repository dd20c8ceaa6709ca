// Tests `usage --history` on logs that another program has written again, with spaces in their JSON.

import { expect, test } from "bun:test";
import { CLAUDE, claudeRow, makeHome } from "../../../billing/history/made-logs.ts";
import { runProcess } from "../../driving.ts";

async function readTotal(files: Parameters<typeof makeHome>[0]): Promise<unknown> {
  const home = makeHome(files);
  const env = { HOME: home, GATEWAY_CONFIG: "", TZ: "UTC" };
  const { stdout } = await runProcess({ folder: home, env }, "usage", "--history", "--json");
  const { requests, usage } = JSON.parse(stdout).total;
  return { requests, usage };
}

/** Writes rows of JSON as Python's json.dumps does, with spaces. */
function withSpaces(rows: readonly object[]): string {
  return rows
    .map((row) => `${JSON.stringify(row).replaceAll('":', '": ').replaceAll(',"', ', "')}\n`)
    .join("");
}

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
