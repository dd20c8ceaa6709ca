// A limit in USD does not stop sessions that cost less. Many requests at once do not spend many times the
// limit, even if their answers are longer than all earlier ones. Agents work like Claude Code, Codex and
// Gemini CLI: prompts grow and are cached, small requests and subagents run at once, caps are high or absent.

import { describe, expect, test } from "bun:test";
import { array, assert, asyncProperty, integer, record } from "fast-check";
import {
  formatDecimal,
  formatUsd,
  multiplyDecimals,
  parseDecimal,
  type Usd,
} from "../../../src/lib/money.ts";
import { openDice } from "../../harness/random.ts";
import { type Agent, costOf, limitedKey, Simulation, type Turn } from "./simulated-sessions.ts";

const OPUS = "claude-opus-5-5";
const SONNET = "claude-sonnet-5-5";
const HAIKU = "claude-haiku-4-5";

interface Shape {
  readonly model: string;
  readonly turns: number;
  /** Tokens of the first and of the last prompt. */
  readonly prompts: readonly [number, number];
  /** The tokens of each answer. By default, answers are as long as an agent's. */
  readonly output?: number;
  readonly beginsAt?: number;
}

interface Times {
  readonly name: string;
  readonly of: (next: () => number) => number;
}

function makeAgent(shape: Shape, number: number, { of }: Times, cap: number | null): Agent {
  const { model, turns: count, prompts, beginsAt = 0 } = shape;
  const next = openDice(number + 1);
  const [first, last] = prompts;
  const step = (last - first) / Math.max(1, count - 1);
  const turns = Array.from({ length: count }, (_, index): Turn => {
    const cached = index === 0 ? 0 : Math.floor(first + step * (index - 1)) - 4;
    const said = index % 17 === 16 ? 4000 : 150 + Math.floor(next() * 900);
    const prompt = Math.floor(first + step * index);
    return { model, prompt, cached, fresh: 4, output: shape.output ?? said, cap, seconds: of(next) };
  });
  return { name: `agent ${number}`, session: "one", beginsAt, turns };
}

const many = (count: number, shape: Shape): Shape[] => Array.from({ length: count }, () => shape);
const LONG = [18_000, 170_000] as const;
const MAIN: Shape = { model: OPUS, turns: 65, prompts: LONG };

const WARM: Readonly<Record<string, readonly Shape[]>> = {
  "opus alone": [{ ...MAIN, turns: 150 }],
  "opus and small requests of haiku": [
    { ...MAIN, turns: 150 },
    { model: HAIKU, turns: 150, prompts: [900, 900], output: 20 },
  ],
  "opus and four agents of sonnet": [
    MAIN,
    ...[20, 40, 60, 80].map((beginsAt): Shape => ({
      model: SONNET,
      turns: 30,
      prompts: [18_000, 120_000],
      beginsAt,
    })),
  ],
  "three times Codex": many(3, { model: "gpt-6.2-sol", turns: 50, prompts: LONG }),
  "three times Gemini": many(3, { model: "gemini-3.8-flash", turns: 50, prompts: LONG }),
  "opus with 400,000 tokens, and three with 200,000": [
    { model: OPUS, turns: 20, prompts: [200_000, 400_000] },
    ...many(3, { model: OPUS, turns: 20, prompts: [100_000, 200_000] }),
  ],
};
const COLD: Readonly<Record<string, readonly Shape[]>> = {
  "ten agents of sonnet": many(10, { model: SONNET, turns: 8, prompts: [18_000, 26_000] }),
};
const TIMES: readonly Times[] = [
  { name: "quick answers", of: () => 0.25 },
  { name: "answers of 8 s", of: () => 8 },
  { name: "answers of 5 to 40 s", of: (next) => 5 + Math.floor(next() * 36) },
];
const CAPS = [null, 32_000, 64_000, 128_000];
/** How many real tokens a text has for each token that is estimated from its size. */
const DENSITIES = [1, 0.8, 1.25];

function multiply(usd: Usd, factor: string): string {
  return formatDecimal(multiplyDecimals(parseDecimal(formatUsd(usd)), parseDecimal(factor)));
}

async function play(agents: readonly Agent[], limit: string, density = 1) {
  const simulation = new Simulation(limitedKey({ usdTotal: limit }), density);
  for (const agent of agents) simulation.add(agent);
  return simulation.run();
}

const trueCost = (agents: readonly Agent[]): Usd => costOf(agents.flatMap(({ turns }) => turns));

describe("P115: sessions are not refused if their limit is 1.01 times what they cost", () => {
  test.each(
    Object.entries(WARM).flatMap(([name, shapes]) => TIMES.map((times) => ({ name, shapes, times }))),
  )("a limit of 1.01 times the cost refuses nothing: $name, $times.name", async ({ shapes, times }) => {
    for (const cap of CAPS)
      for (const density of DENSITIES) {
        const agents = shapes.map((shape, index) => makeAgent(shape, index, times, cap));
        const cost = trueCost(agents);
        const { requests, admitted, refused, spent } = await play(agents, multiply(cost, "1.01"), density);
        expect({ cap, density, refused, admitted, spent }).toEqual({
          cap,
          density,
          refused: 0,
          admitted: requests,
          spent: formatUsd(cost),
        });
      }
  });
});

describe("agents that all begin at once on a fresh installation, with 4 times their cost as the limit", () => {
  test.each(
    Object.entries(COLD).flatMap(([name, shapes]) => TIMES.map((times) => ({ name, shapes, times }))),
  )("agents that may retry twice give up no request: $name, $times.name", async ({ shapes, times }) => {
    for (const cap of CAPS) {
      const agents = shapes.map((shape, index) => makeAgent(shape, index, times, cap));
      const { requests, admitted, givenUp } = await play(agents, multiply(trueCost(agents), "4"));
      expect({ cap, givenUp, admitted }).toEqual({ cap, givenUp: 0, admitted: requests });
    }
  });
});

test.each([
  { model: OPUS, turns: 5, times: { name: "answers of 12 s", of: () => 12 } },
  { model: SONNET, turns: 5, times: { name: "answers of 12 s", of: () => 12 } },
  { model: SONNET, turns: 20, times: { name: "answers of 16 to 20 s", of: (next) => 16 + 4 * next() } },
] satisfies { model: string; turns: number; times: Times }[])(
  "a fresh installation refuses none of five $model agents that share a limit of $0.50: $turns turns, $times.name",
  async ({ model, turns, times }) => {
    for (const cap of CAPS) {
      const shapes = many(5, { model, turns, prompts: [2500, 4000], output: 400 });
      const agents = shapes.map((shape, index) => makeAgent(shape, index, times, cap));
      const { refused, spent, longestWait } = await play(agents, "0.5");
      const isAll = Number(spent) === Number(formatUsd(trueCost(agents)));
      expect({ cap, refused, isDone: isAll || Number(spent) >= 0.5, isLong: longestWait > 100 }).toEqual({
        cap,
        refused: 0,
        isDone: true,
        isLong: false,
      });
    }
  },
);

interface Burst {
  readonly limit: string;
  readonly cap: number | null;
  readonly output: number;
  readonly prompt: number;
  /** This many requests with answers of 50 tokens run before the burst, `together` of them at once. */
  readonly before?: number;
  readonly together?: number;
}

function listBurst({ cap, output, prompt, before = 0, together = 1 }: Burst): Agent[] {
  const small = { model: OPUS, prompt: 4, cached: 0, fresh: 4, output: 50, cap, seconds: 1 };
  const large = { model: OPUS, prompt, cached: 0, fresh: prompt, output, cap, seconds: 10 };
  const earlier = Array.from({ length: before === 0 ? 0 : together }, (_, index): Agent => {
    const turns = Array.from({ length: before / together }, () => small);
    return { name: `before ${index}`, session: "before", beginsAt: 0, turns };
  });
  const burst = Array.from({ length: 200 }, (_, index): Agent => {
    return { name: `${index}`, session: `${index}`, beginsAt: 1000, turns: [large] };
  });
  return [...earlier, ...burst];
}

describe("P115: 200 requests at once spend at most twice the limit, or the limit and one request", () => {
  const COLD = { limit: "1", prompt: 2000 };
  const AFTER_SHORT = { limit: "2", prompt: 3875, before: 100 };
  test.each([
    ["no earlier answer, a cap of 128,000, answers of 4,000", { ...COLD, cap: 128_000, output: 4000 }],
    ["no earlier answer, a cap of 128,000, answers of 30,000", { ...COLD, cap: 128_000, output: 30_000 }],
    ["no earlier answer, no cap, answers of 30,000", { ...COLD, cap: null, output: 30_000 }],
    ["no earlier answer, an upstream that ignores a cap of 500", { ...COLD, cap: 500, output: 4000 }],
    ["short answers before, then 4,000", { ...AFTER_SHORT, cap: null, output: 4000 }],
    ["short answers before, then 20,000", { ...AFTER_SHORT, cap: 20_000, output: 20_000 }],
    [
      "short answers before, five at once, then 20,000",
      { ...AFTER_SHORT, cap: 20_000, output: 20_000, together: 5 },
    ],
    [
      "short answers before, twenty at once, then 20,000",
      { ...AFTER_SHORT, cap: 20_000, output: 20_000, together: 20 },
    ],
  ] as const)("200 requests at once keep to twice the limit: %s", async (_, burst) => {
    const agents = listBurst(burst);
    const { spent } = await play(agents, burst.limit);
    const limit = Number(burst.limit);
    const single = Number(formatUsd(costOf(agents.at(-1)!.turns)));
    expect(Number(spent)).toBeLessThanOrEqual(Math.max(2 * limit, limit + single));
    // The limit does not refuse everything, either.
    expect(Number(spent)).toBeGreaterThan(limit * 0.9);
  });

  test("if no answer exceeds its cap, requests spend at most twice the limit, or the limit plus the dearest request", async () => {
    const turn = record({
      output: integer({ min: 1, max: 32_000 }),
      more: integer({ min: 0, max: 32_000 }),
      at: integer({ min: 0, max: 60 }),
    });
    await assert(
      asyncProperty(array(turn, { minLength: 5, maxLength: 60 }), async (turns) => {
        const agents = turns.map(({ output, more, at }, index): Agent => {
          const cap = Math.min(32_000, output + more);
          const one = {
            model: OPUS,
            prompt: 100,
            cached: 0,
            fresh: 100,
            output,
            cap,
            seconds: 1 + (output % 20),
          };
          return { name: `${index}`, session: `${index}`, beginsAt: at, turns: [one, one] };
        });
        const { spent } = await play(agents, "1");
        const dearest = Math.max(...agents.map((agent) => Number(formatUsd(costOf(agent.turns.slice(1))))));
        expect(Number(spent)).toBeLessThanOrEqual(Math.max(2, 1 + dearest));
      }),
      { numRuns: 100, seed: 20261123 },
    );
  });
});
