// Checks what an agent has done and paid after the scripted task on a model of another provider.

import { expect } from "bun:test";
import { sumUsage } from "../../../src/billing/usage.ts";
import type { DialectName } from "../../../src/dialects/dialect.ts";
import { DIALECTS } from "../../../src/dialects/endpoints.ts";
import type { Any } from "../../bridges/calls.ts";
import { flatten } from "../../bridges/judge.ts";
import type { Exchanged } from "./front.ts";
import type { ScriptedUpstream } from "./scripted-upstream.ts";
import { measureShare, type ScriptedTask } from "./task.ts";

/** An image as a part of a request. */
const IMAGE = /"(?:input_image|image_url|image|inlineData)"/;

/** Checks a session, and returns what `measureShare` measured. */
export function judgeSession(upstream: ScriptedUpstream, task: ScriptedTask, dialect: DialectName): number {
  const { asked, problems } = upstream;
  expect([...new Set(problems)]).toEqual([]);
  const results = asked.flatMap(({ body }) => flatten(dialect, body)).filter(([kind]) => kind === "result");
  expect(results.some(([, , said]) => JSON.stringify(said).includes("wrong"))).toBe(true);
  expect(asked.some(({ text }) => IMAGE.test(text))).toBe(true);
  expect(task.summaries).toBeGreaterThan(0);
  // Requests without tools are left out: pi asks for its summary in a session of its own.
  const turns = asked.filter(({ body }) => body.tools !== undefined);
  const keys = turns.map(({ body }) => body.prompt_cache_key ?? body.metadata?.user_id ?? null);
  if (dialect === "responses" || dialect === "messages") expect(keys).not.toContain(null);
  expect(new Set(keys).size).toBe(1);
  const share = measureShare(task.turns);
  expect(share).toBeGreaterThanOrEqual(0.9);
  return share;
}

/** Paths of requests for a token count, which cost nothing. */
const COUNT = /count_?tokens|input_tokens/i;

/** Checks that the counts that the agent was told are those of the ledger's lines. */
export function judgeMoney(
  client: DialectName,
  exchanged: readonly Exchanged[],
  lines: readonly Any[],
): void {
  const told = exchanged.flatMap(({ path, status, type, answer }): Any[] => {
    if (status !== 200 || COUNT.test(path)) return [];
    const meter = DIALECTS[client].openMeter(type);
    meter.see(Buffer.from(answer));
    const reading = meter.read();
    return reading.end === "complete" ? [sumUsage(reading.parts)] : [];
  });
  const billed = lines.flatMap(({ outcome, usage }) => (outcome === "complete" ? [usage] : []));
  expect(told.map(pickTotals)).toEqual(billed.map(pickTotals));
  expect(told.length).toBeGreaterThan(0);
}

function pickTotals({ input = 0, cache_read = 0, output = 0 }: Any): Any {
  return { input, cache_read, output };
}
