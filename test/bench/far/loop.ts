// What an agent's loop of 20 tool calls waits for on a line of 25 ms each way: over HTTP, where each turn sends the whole
// conversation, and over a WebSocket, where it sends what is new. Going direct and through the gateway.

import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { type Cores, makeFolder, start } from "../machine.ts";
import { type Results, readSpread } from "../results/measures.ts";
import { readReadyPort, SECRET } from "../targets/targets.ts";
import type { FarPlan } from "./far.ts";

const TURNS = 20;
/** A just-in-time compiler is slow in its first seconds, but users' gateways run for days. */
const WARM_UP_LOOPS = 25;
/** A file that a tool has read. */
const TOOL_RESULT = "x".repeat(8000);
const HTTP = "loop: ms a turn, HTTP";
const SOCKET = "loop: ms a turn, WebSocket";
export const LOOP_ROWS = [HTTP, SOCKET] as const;

export async function measureLoop(plan: FarPlan, cores: Cores | null, results: Results): Promise<void> {
  const run = (file: string, ...args: string[]) =>
    start([process.execPath, join(import.meta.dir, file), ...args], { core: cores?.upstream ?? null });
  const upstream = run("agent-upstream.ts");
  const line = run("line.ts", (await upstream.readLine()) ?? "");
  const port = Number(await line.readLine());
  for (let round = 0; round < plan.rounds; round += 1) {
    plan.note(`loop ${round + 1}/${plan.rounds}`);
    results.add("direct", await measureBoth(port));
    for (const [name, command] of Object.entries(plan.commands)) {
      const folder = makeFolder();
      const file = join(folder.path, "gateway.yaml");
      writeFileSync(file, JSON.stringify(makeConfig(port)), { mode: 0o600 });
      const serve = [...command, "serve", "--config", file, "--log", "off"];
      const gateway = start(serve, { core: cores?.proxy ?? null });
      const near = await readReadyPort(gateway);
      await Promise.all(Array.from({ length: WARM_UP_LOOPS }, () => measureBoth(near)));
      results.add(name, await measureBoth(near));
      await gateway.stop();
      folder.remove();
    }
  }
  await Promise.all([line.stop(), upstream.stop()]);
}

function makeConfig(port: number): object {
  const far = { platform: "responses", base_url: `http://127.0.0.1:${port}/v1`, credential: "credential" };
  return {
    listen: { port: 0 },
    channels: { far },
    groups: { far: { platform: "responses", channels: ["far"] } },
    keys: [{ name: "bench", group: "far", secret: SECRET }],
  };
}

async function measureBoth(port: number): Promise<Record<string, number>> {
  return { [HTTP]: await measureHttp(port), [SOCKET]: await measureSocket(port) };
}

const FIELDS = { authorization: `Bearer ${SECRET}`, "content-type": "application/json" };
const newItems = () => [
  { type: "function_call", call_id: "call_1", name: "read", arguments: '{"path":"a.ts"}' },
  { type: "function_call_output", call_id: "call_1", output: TOOL_RESULT },
];

async function measureHttp(port: number): Promise<number> {
  const input: object[] = [{ role: "user", content: "Fix the bug" }];
  return await measureTurns(async () => {
    const body = JSON.stringify({ model: "gpt-5.4", stream: true, store: false, input });
    const url = `http://127.0.0.1:${port}/v1/responses`;
    const text = await (await fetch(url, { method: "POST", headers: FIELDS, body })).text();
    if (!text.includes("response.completed")) throw new Error(`a turn failed: ${text.slice(0, 200)}`);
    input.push(...newItems());
  });
}

async function measureSocket(port: number): Promise<number> {
  const socket = new WebSocket(`ws://127.0.0.1:${port}/v1/responses`, { headers: FIELDS });
  await new Promise((resolve, reject) => {
    socket.addEventListener("open", resolve);
    socket.addEventListener("close", () => reject(new Error("the WebSocket was refused")));
  });
  let previous: string | undefined;
  const spread = await measureTurns(async () => {
    const ended = waitForEnd(socket);
    const request = { type: "response.create", model: "gpt-5.4", store: false, input: newItems() };
    socket.send(
      JSON.stringify(previous === undefined ? request : { ...request, previous_response_id: previous }),
    );
    previous = await ended;
  });
  socket.close();
  return spread;
}

/** Resolves with the id of the response that has completed. */
function waitForEnd(socket: WebSocket): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  const read = ({ data }: MessageEvent): void => {
    const event = JSON.parse(String(data));
    if (event.type !== "response.completed" && event.type !== "error") return;
    socket.removeEventListener("message", read);
    if (event.type === "error") reject(new Error(String(data)));
    else resolve(String(event.response.id));
  };
  socket.addEventListener("message", read);
  return promise;
}

/** The median of the turns after the first one, which opens connections. */
async function measureTurns(turn: () => Promise<void>): Promise<number> {
  const times: number[] = [];
  for (let count = 0; count < TURNS; count += 1) {
    const began = performance.now();
    await turn();
    times.push(performance.now() - began);
  }
  return readSpread(times.slice(1)).median;
}
