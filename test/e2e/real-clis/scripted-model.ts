// A simulated model that does what the user's text says. `[work]`: it runs a command, fetches a page and
// starts a subagent, one after the other, if the tool can. `[spawn 2]`: it starts a subagent, which starts
// another one. `[loop]`: it makes the same tool call again and again. `[full]`: it reports more tokens than
// any window has. `[slow]`: an answer takes ten seconds. `[cut]`: its connection ends within an answer.

import { answerJson, answerStream, type Answer, replaceFields } from "../../harness/model/answers/answer.ts";
import { chat } from "../../harness/model/answers/chat.ts";
import {
  composeCompletion,
  type Completion,
  type ModelRequest,
} from "../../harness/model/answers/completion.ts";
import { content } from "../../harness/model/answers/content.ts";
import type { Family } from "../../harness/model/answers/family.ts";
import { messages } from "../../harness/model/answers/messages.ts";
import { responses } from "../../harness/model/answers/responses.ts";
import { PAGE_HOST } from "../../harness/upstreams/vendor.ts";
import { pick, pickList, pickText } from "../../harness/model/json.ts";
import { cutHalf, listSteps, planSteps } from "../../harness/model/script.ts";
import {
  type DemoUpstream,
  type ReceivedRequest,
  startDemoUpstream,
} from "../../harness/upstreams/demo-upstream.ts";

const FAMILIES: ReadonlyArray<readonly [path: RegExp, family: Family]> = [
  [/\/v1\/messages$/, messages],
  [/\/v1\/responses$/, responses],
  [/\/v1\/chat\/completions$/, chat],
  [/\/models\/(.+):(?:g|streamG)enerateContent$/, content],
];

/** More tokens than any window has. */
const FULL_TOKENS = 9_000_000;

type Input = Readonly<Record<string, string>>;

/** How each tool starts a subagent. opencode and Copilot CLI both have `task`, with different parameters. */
const SUBAGENTS: Readonly<Record<string, (prompt: string) => Input>> = {
  Agent: (prompt) => ({ description: "a part", prompt, subagent_type: "general-purpose" }),
  task: (prompt) => ({
    description: "a part",
    prompt,
    subagent_type: "general",
    agent_type: "general-purpose",
    name: "part",
    mode: "sync",
  }),
  // A subagent that starts another one begins with a copy of what its parent has said.
  spawn_agent: (message) => ({
    task_name: "part",
    message,
    fork_turns: message.includes("[spawn") ? "all" : "none",
  }),
  invoke_agent: (prompt) => ({ agent_name: "generalist", prompt }),
};

/** The command that the model calls, and how each tool runs it. */
const COMMAND = "echo same";
const COMMANDS: Readonly<Record<string, Input | string>> = {
  Bash: { command: COMMAND },
  bash: { command: COMMAND, description: "says same" },
  run_shell_command: { command: COMMAND },
  // Codex lets the model write a script.
  exec: `text(await tools.exec_command({ cmd: "${COMMAND}" }));`,
};

interface Offered {
  readonly name: string;
  readonly schema: unknown;
}

/** The usage that the model reports for a request. */
export interface Reported extends Pick<Completion, "model" | "counts"> {
  /** The id of the request, in a header of the answer. */
  readonly id: string;
  readonly prompt: string;
}

export interface ScriptedModel extends DemoUpstream {
  readonly reported: readonly Reported[];
}

const SLOW_PIECE_MS = 500;

export function startScriptedModel(): ScriptedModel {
  let serial = 0;
  const memory = { next: () => (serial += 1), cached: new Set<string>() };
  const upstream = startDemoUpstream();
  const reported: Reported[] = [];
  upstream.always({
    when: (request) => findFamily(request) !== undefined,
    steps: (request) => {
      const family = findFamily(request) ?? messages;
      const ask = readModelRequest(family, request);
      const plain = composeCompletion({ ...ask, choice: "none" }, memory);
      const completion = follow(ask, request.json, plain);
      const { model, counts } = completion;
      const id = `req_model${completion.serial}`;
      reported.push({ id, model, counts, prompt: ask.prompt });
      const name = family.name === "messages" ? "request-id" : "x-request-id";
      const answer = replaceFields(write(family, ask, completion), [[name, id]]);
      const plan = planSteps(answer, ask.prompt.includes("[slow]") ? { paceMs: SLOW_PIECE_MS } : {});
      return ask.prompt.includes("[cut]") ? [plan.head, ...cutHalf(plan.body), "reset"] : listSteps(plan);
    },
  });
  return { ...upstream, reported };
}

function findFamily({ method, target }: ReceivedRequest): Family | undefined {
  const { pathname } = new URL(target, "http://model");
  return method === "POST" ? FAMILIES.find(([path]) => path.test(pathname))?.[1] : undefined;
}

/** Reads the user's last text, as the model gets it; empty for requests to other endpoints. */
export function readPrompt(request: ReceivedRequest): string {
  const family = findFamily(request);
  return family === undefined ? "" : readModelRequest(family, request).prompt;
}

/** Reads a request. The content dialect has the model and the word for a stream in its path, and not in the body. */
function readModelRequest(family: Family, { json, target }: ReceivedRequest): ModelRequest {
  const ask = family.readRequest(json);
  const [, model = ask.model] = /\/models\/([^:/?]+):/.exec(target) ?? [];
  return { ...ask, model, stream: ask.stream || target.includes(":stream") };
}

function write(family: Family, ask: ModelRequest, completion: Completion): Answer {
  if (!ask.stream) return answerJson(family.name, family.writeReply(completion, {}));
  const events = family.writeEvents(completion, {});
  // Codex has these tools in a namespace.
  const group = (event: string): string =>
    event.replaceAll(/"name":"(?:spawn|wait)_agent"/g, '"namespace":"collaboration",$&');
  return answerStream(family.name, events.map(group));
}

function follow(ask: ModelRequest, body: unknown, plain: Completion): Completion {
  const next =
    doWork(ask, body, plain) ?? callCommand(ask, body, plain) ?? callSubagent(ask, body, plain) ?? plain;
  const isFull = listTools(ask, body).length > 0 && readScript(ask, body).includes("[full]");
  return isFull ? { ...next, counts: { ...next.counts, input: FULL_TOKENS } } : next;
}

const PAGE = { url: `https://${PAGE_HOST}/`, prompt: "What is there?", format: "text" };
/** Finds the results of tool calls in a request. */
export const RESULT =
  /"type":"(?:tool_result|(?:custom_tool|function)_call_output)"|"functionResponse":|"role":"tool"/g;

/** Makes the next call for `[work]`: each step that is done has left a result in the request. */
function doWork(ask: ModelRequest, body: unknown, plain: Completion): Completion | null {
  const text = JSON.stringify(body);
  if (!text.includes("[work]")) return null;
  const calls = listTools(ask, body).flatMap(({ name, schema }) => {
    const input = COMMANDS[name] ?? (/^web_?fetch$/i.test(name) ? PAGE : SUBAGENTS[name]?.("Say hello."));
    return input === undefined
      ? []
      : [{ name, input: typeof input === "string" ? input : fit(input, schema) }];
  });
  const call = calls[[...text.matchAll(RESULT)].length];
  return call === undefined ? null : callTool(plain, call.name, call.input);
}

function callCommand(ask: ModelRequest, body: unknown, plain: Completion): Completion | null {
  const tool = listTools(ask, body).find(({ name }) => Object.hasOwn(COMMANDS, name));
  if (tool === undefined || !JSON.stringify(body).includes("[loop]")) return null;
  return callTool(plain, tool.name, COMMANDS[tool.name] ?? {});
}

function callSubagent(ask: ModelRequest, body: unknown, plain: Completion): Completion | null {
  const [, depth = "0"] = /\[spawn (\d)\]/.exec(readScript(ask, body)) ?? [];
  const tool = listTools(ask, body).find(({ name }) => Object.hasOwn(SUBAGENTS, name));
  // Codex ends its subagents when the main agent has ended, so the main agent waits for them.
  const isStarted = pickText(pickList(body, "input").at(-2), "name") === "spawn_agent";
  if (isStarted) return callTool(plain, "wait_agent", {});
  if (depth === "0" || tool === undefined || ask.toolResult !== null) return null;
  const prompt = depth === "1" ? "Say hello." : `[spawn ${Number(depth) - 1}]`;
  return callTool(plain, tool.name, fit(SUBAGENTS[tool.name]?.(prompt) ?? {}, tool.schema));
}

function callTool(plain: Completion, name: string, input: Input | string): Completion {
  const custom = typeof input === "string";
  const text = custom ? input : JSON.stringify(input);
  return { ...plain, text: [], stop: "tool", calls: [{ id: plain.serial, name, input: text, custom }] };
}

/** Keeps only the parameters that the tool has. */
function fit(input: Input, schema: unknown): Input {
  return Object.fromEntries(
    Object.entries(input).filter(([name]) => pick(schema, "properties", name) !== undefined),
  );
}

/** Reads the user's words, or in Codex an agent's words to another agent. */
function readScript({ prompt }: ModelRequest, body: unknown): string {
  const last = pickList(body, "input").at(-1);
  return pickText(last, "type") === "agent_message" ? JSON.stringify(last) : prompt;
}

/** Lists the offered tools. Codex sends them as an item of the input, in groups. */
function listTools({ tools }: ModelRequest, body: unknown): Offered[] {
  const added = pickList(body, "input").find((item) => pickText(item, "type") === "additional_tools");
  const groups = pickList(added, "tools").flatMap((group) => pickList(group, "tools"));
  const inGroups = groups.map((tool) => ({ name: pickText(tool, "name"), schema: pick(tool, "parameters") }));
  return [...tools, ...inGroups];
}
