// The scripted task with agents that are small programs, in each direction: what released agents do in
// test/e2e/real-clis/converted.test.ts, without them.

import { expect, test } from "bun:test";
import { DIALECT_NAMES, type DialectName } from "../../../src/dialects/dialect.ts";
import type { Any } from "../../bridges/calls.ts";
import { checkPublishedTypes } from "../../bridges/published-types.ts";
import { type InsideGateway, startGatewayHere } from "../../harness/gateway.ts";
import { flushLedger } from "../world.ts";
import { type Front, startFront } from "./front.ts";
import { type AgentCall, type Outcome, PROGRAM_AGENTS, type ProgramAgent } from "./program-agents.ts";
import { type ScriptedUpstream, startScriptedUpstream } from "./scripted-upstream.ts";
import { ScriptedTask, SITTINGS } from "./task.ts";
import { judgeMoney, judgeSession } from "./verdict.ts";

const SECRET = "sk-test-converted";
const MODEL_OF: Readonly<Record<DialectName, string>> = {
  messages: "claude-opus-4-8",
  responses: "gpt-5.6",
  chat: "qwen3-coder",
  content: "gemini-3.5-pro",
};
const FOLDER = "/files";
const MAX_TRIES = 3;

const bodies: Readonly<Record<DialectName, Any[]>> = { messages: [], responses: [], chat: [], content: [] };

/** Plays a call: the files are made up. */
function run({ name, input }: AgentCall): Outcome {
  const asked = JSON.stringify(input);
  if (asked.includes("exit 3")) return { text: "wrong\nExit code 3", isFailed: true };
  if (asked.includes(".png")) return { text: "An image", image: "iVBORw0KGgo=" };
  return { text: /edit|replace|patch/i.test(name) ? "Done." : "one\n" };
}

interface World {
  readonly agent: ProgramAgent;
  readonly task: ScriptedTask;
  readonly upstream: ScriptedUpstream;
  readonly gateway: InsideGateway;
  readonly front: Front;
  history: Any[];
}

function openWorld(open: (typeof PROGRAM_AGENTS)[number], dialect: DialectName): World {
  const task = new ScriptedTask(dialect, FOLDER);
  const upstream = startScriptedUpstream(dialect, (asked) => task.play(asked));
  const front = startFront(() => gateway.url);
  const agent = open(front.url, SECRET);
  const channel = {
    platform: dialect,
    base_url: upstream.url,
    credential: "credential-of-far",
    aliases: { "*": MODEL_OF[dialect] },
    price_provider: "openai",
  };
  const platform = agent.client === "chat" ? "responses" : agent.client;
  const gateway = startGatewayHere({
    config: {
      channels: { far: channel },
      groups: { g: { platform, channels: ["far"], convert: true } },
      keys: [{ name: "k", group: "g", secret: SECRET }],
    },
  });
  return { agent, task, upstream, gateway, front, history: [] };
}

/** Null: its user has cancelled the turn. */
async function send({ agent, task, history }: World): Promise<Any[] | null> {
  const left = new AbortController();
  if (!task.isStalled) void task.stalled.then(() => left.abort());
  for (let tries = 1; ; tries += 1) {
    try {
      return await agent.send(history, left.signal, tries === 1);
    } catch (error) {
      if (left.signal.aborted) return null;
      if (tries === MAX_TRIES) throw error;
    }
  }
}

async function playSitting(world: World): Promise<void> {
  const { agent, history } = world;
  history.push(agent.say("Go on."));
  for (let kept = await send(world); kept !== null; kept = await send(world)) {
    history.push(...kept);
    const calls = agent.listCalls(kept);
    if (calls.length === 0) return;
    history.push(...agent.answer(calls, calls.map(run)));
  }
}

async function compact(world: World): Promise<void> {
  const { agent } = world;
  world.history.push(agent.say("Write a summary of this conversation."));
  const kept = await send(world);
  expect(JSON.stringify(kept)).toContain("What happened");
  world.history = [agent.say("What happened: much.")];
}

const CASES = PROGRAM_AGENTS.flatMap((open) => {
  const { name, client } = open("http://127.0.0.1:1", SECRET);
  return DIALECT_NAMES.filter((each) => each !== client && `${client}>${each}` !== "chat>responses").map(
    (upstream) => [`${name} (${client}) on a ${upstream} channel`, open, upstream] as const,
  );
});

test.each(CASES)(
  "%s does the scripted task, keeps the cache and is billed what it was told",
  async (_title, open, dialect) => {
    const world = openWorld(open, dialect);
    const { task, upstream, gateway, front, agent } = world;
    try {
      for (const at of SITTINGS.keys()) {
        if (at === 2) await compact(world);
        await playSitting(world);
      }
      expect(task.sitting).toBe(SITTINGS.length);
      judgeSession(upstream, task, dialect);
      await gateway.recorded(front.exchanged.length);
      await flushLedger();
      judgeMoney(agent.client, front.exchanged, gateway.ledger());
      bodies[dialect].push(...upstream.asked.map(({ body }) => body));
    } finally {
      front.stop();
      upstream.stop();
      await gateway.stop();
    }
  },
);

test.each(DIALECT_NAMES)(
  "every request to a %s channel has the types that the provider publishes",
  async (dialect) => {
    expect(bodies[dialect].length).toBeGreaterThan(0);
    expect(await checkPublishedTypes(dialect, bodies[dialect])).toBe("");
  },
);
