// A task that a model does with an agent's own tools, in any dialect: it reads files in parallel, edits one, runs a command that
// fails, looks at an image, and goes on after an error and a broken answer. Later the session is compacted, a turn is
// cancelled, and the task ends.

import { writeFileSync } from "node:fs";
import { join } from "node:path";
import type { DialectName } from "../../../src/dialects/dialect.ts";
import type { Any } from "../../bridges/calls.ts";
import { flatten } from "../../bridges/judge.ts";
import type { ModelCall } from "../../bridges/session.ts";
import type { Asked, Played } from "./scripted-upstream.ts";

/** What the model makes the agent do. */
type Act = { readonly do: "read" | "look"; readonly file: string } | { readonly do: "edit" | "fail" };

type Step =
  | { readonly thought?: string; readonly text?: string; readonly acts?: readonly Act[] }
  | { readonly breaks: "busy" | "cut" | "stalls" };

const READS = ["a.txt", "b.txt", "c.txt"].map((file): Act => ({ do: "read", file }));

/** The steps of each sitting, which ends when the model calls no tool. */
export const SITTINGS: readonly (readonly Step[])[] = [
  [
    { thought: "Three files.", text: "I read them.", acts: READS },
    { thought: "One to change.", acts: [{ do: "edit" }] },
    { breaks: "busy" },
    { text: "Now the check.", acts: [{ do: "fail" }] },
    { thought: "It failed.", acts: [{ do: "look", file: "image.png" }] },
    { breaks: "cut" },
    { thought: "Enough.", text: "The first part is done." },
  ],
  [{ acts: [{ do: "read", file: "b.txt" }] }, { thought: "Long.", text: "The second part is done." }],
  [{ thought: "Again.", acts: [{ do: "read", file: "c.txt" }] }, { breaks: "stalls" }],
  [{ thought: "Last.", acts: [{ do: "read", file: "a.txt" }] }, { text: "All is done." }],
];

/** In the last turn of this sitting, the model reports that the prompt fills its window. With `isFullEarly`,
 *  it reports so in the earlier turns instead, because some agents look at the size only while they run. */
const FULL_SITTING = 1;
const FULL_TOKENS = 9_000_000;
const SUMMARY = "What happened: the numbers were read, and one was changed.";
const PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGP4z8AAAAMBAQDJ/pLvAAAAAElFTkSuQmCC";
const PATCH = "*** Begin Patch\n*** Update File: a.txt\n@@\n-one\n+two\n*** End Patch\n";

export function writeFiles(folder: string): void {
  writeFileSync(join(folder, "a.txt"), "one\n");
  writeFileSync(join(folder, "b.txt"), "Ä second file — 🙂\n");
  writeFileSync(join(folder, "c.txt"), "three\n".repeat(40));
  writeFileSync(join(folder, "image.png"), Buffer.from(PNG, "base64"));
}

type Input = Readonly<Record<string, unknown>>;
type Skill = (path: string) => Input;

const run = (command: string): Input => ({ command, cmd: command, description: "The check" });
/** Writes the input of Codex's tools that take a script in place of arguments. */
const script = (line: string): Input => ({ input: line });
const FAILING = "echo wrong; exit 3";

/** For each act, the calls by which tools do it. The first tool that the agent has is called. */
const SKILLS: Readonly<Record<Act["do"], Readonly<Record<string, Skill>>>> = {
  read: {
    Read: (path) => ({ file_path: path }),
    read: (path) => ({ filePath: path, path }),
    read_file: (path) => ({ file_path: path, absolute_path: path }),
    exec: (path) => script(`text(await tools.exec_command({ cmd: "cat ${path}" }));`),
    exec_command: (path) => run(`cat ${path}`),
  },
  edit: {
    apply_patch: () => ({ input: PATCH, patchText: PATCH }),
    Edit: (path) => ({ file_path: path, old_string: "one", new_string: "two" }),
    edit: (path) => ({
      filePath: path,
      oldString: "one",
      newString: "two",
      path,
      edits: [{ oldText: "one", newText: "two" }],
    }),
    replace: (path) => ({ file_path: path, instruction: "two", old_string: "one", new_string: "two" }),
    exec: () => script(`text(await tools.apply_patch(${JSON.stringify(PATCH)}));`),
    // For a model whose name it does not know, Codex has no tool for edits, but understands this command.
    exec_command: () => run(`apply_patch <<'EOF'\n${PATCH}EOF`),
  },
  fail: {
    Bash: () => run(FAILING),
    bash: () => run(FAILING),
    run_shell_command: () => run(FAILING),
    exec: () => script(`text(await tools.exec_command({ cmd: "${FAILING}" }));`),
    exec_command: () => run(FAILING),
  },
  look: {
    Read: (path) => ({ file_path: path }),
    read: (path) => ({ filePath: path, path }),
    read_file: (path) => ({ file_path: path, absolute_path: path }),
    view_image: (path) => ({ path }),
    exec: (path) => script(`image(await tools.view_image({ path: "${path}" }));`),
  },
};

interface Offered {
  readonly name: string;
  readonly schema: Any;
}

function listTools(dialect: DialectName, body: Any): Offered[] {
  const tools: Any[] = (dialect === "content" ? body.tools?.[0]?.functionDeclarations : body.tools) ?? [];
  return tools.map((tool) => {
    const declared = tool.function ?? tool;
    const schema = declared.input_schema ?? declared.parameters ?? declared.parametersJsonSchema;
    return { name: declared.name ?? tool.type, schema };
  });
}

export class ScriptedTask {
  /** How many sittings have ended. */
  sitting = 0;
  /** The main agent's requests, each with its sitting. */
  readonly turns: { readonly sitting: number; readonly text: string }[] = [];
  /** How many summaries were asked for. */
  summaries = 0;
  readonly #dialect: DialectName;
  readonly #folder: string;
  readonly #isFullEarly: boolean;
  #step = 0;
  #calls = 0;
  #stalled: () => void = () => {};
  /** Resolves when the stalled answer has begun. The user then cancels this turn. */
  readonly stalled = new Promise<void>((resolve) => (this.#stalled = resolve));
  isStalled = false;

  constructor(dialect: DialectName, folder: string, isFullEarly = false) {
    this.#dialect = dialect;
    this.#isFullEarly = isFullEarly;
    this.#folder = folder;
  }

  play({ body, text }: Asked): Played {
    const counts = this.#count(text);
    const answer = (said: string): Played => ({ turn: { thought: null, text: said, calls: [] }, counts });
    const schema = findSchema(body);
    if (schema !== undefined) return answer(JSON.stringify(fill(schema)));
    const said = flatten(this.#dialect, body).findLast(([kind]) => kind === "user")?.[1];
    if (/summar|snapshot/i.test(said)) {
      this.summaries += 1;
      return answer(SUMMARY);
    }
    const tools = listTools(this.#dialect, body);
    if (!tools.some(({ name }) => findSkill("read", name) !== undefined)) return answer("A title");
    this.turns.push({ sitting: this.sitting, text });
    return this.#advance(tools, counts);
  }

  #advance(tools: readonly Offered[], counts: Played extends Response ? never : Any): Played {
    const steps = SITTINGS[this.sitting] ?? [];
    const step = steps[this.#step] ?? { text: "There is nothing more." };
    this.#step += 1;
    if ("breaks" in step) return this.#break(step.breaks, counts);
    const { thought = null, text = null, acts = [] } = step;
    const isEnd = acts.length === 0;
    const isFull = this.sitting === FULL_SITTING && isEnd !== this.#isFullEarly;
    if (isEnd) this.#endSitting();
    const calls = acts.flatMap((act) => this.#call(act, tools));
    return { turn: { thought, text, calls }, counts: isFull ? { ...counts, prompt: FULL_TOKENS } : counts };
  }

  #break(how: "busy" | "cut" | "stalls", counts: Any): Played {
    if (how === "busy")
      return Response.json({ error: { message: "Busy", type: "overloaded_error" } }, { status: 503 });
    if (how === "stalls") {
      this.#endSitting();
      this.isStalled = true;
      this.#stalled();
    }
    return { turn: { thought: "Well,", text: "this is cut off", calls: [] }, counts, breaks: how };
  }

  #endSitting(): void {
    this.sitting += 1;
    this.#step = 0;
  }

  #call(act: Act, tools: readonly Offered[]): ModelCall[] {
    const names = Object.keys(SKILLS[act.do]);
    const known = names.flatMap((name) => tools.filter((tool) => isNamed(tool.name, name)));
    const [tool] = known;
    if (tool === undefined) throw new Error(`no tool to ${act.do}: ${tools.map(({ name }) => name).join()}`);
    const path = join(this.#folder, "file" in act ? act.file : "a.txt");
    const input = findSkill(act.do, tool.name)?.(path) ?? {};
    const members = Object.keys(tool.schema?.properties ?? {});
    const args = Object.fromEntries(Object.entries(input).filter(([name]) => members.includes(name)));
    this.#calls += 1;
    return [{ id: `call_${this.#calls}`, name: tool.name, args }];
  }

  /** Counts like a provider whose cache has the earlier requests of the main agent. */
  #count(text: string): Any {
    const own = openEnd(text);
    const read = Math.max(0, ...this.turns.map((turn) => countShared(openEnd(turn.text), own)));
    const count = (bytes: number): number => Math.floor(bytes / 4);
    return { prompt: count(text.length), read: count(read), output: 20, reasoning: 5 };
  }
}

/** A tool in a namespace has the namespace's name before its own. */
function isNamed(name: string, known: string): boolean {
  return name === known || name.endsWith(`__${known}`);
}

function findSkill(act: Act["do"], name: string): Skill | undefined {
  return Object.entries(SKILLS[act]).find(([known]) => isNamed(name, known))?.[1];
}

/** Finds the schema of the answer that is asked for. */
function findSchema({ output_config, text, response_format, generationConfig }: Any): Any {
  return (
    output_config?.format?.schema ??
    text?.format?.schema ??
    response_format?.json_schema?.schema ??
    generationConfig?.responseJsonSchema
  );
}

/** Returns the smallest value that fits the schema. */
function fill(schema: Any): unknown {
  if (schema.enum !== undefined) return schema.enum[0];
  if (schema.type === "object")
    return Object.fromEntries(
      Object.entries(schema.properties ?? {}).map(([name, each]) => [name, fill(each)]),
    );
  if (schema.type === "array") return [];
  return schema.type === "string" ? "x" : schema.type === "boolean" ? true : 1;
}

const MARK = /,"(?:cache_control|prompt_cache_breakpoint)":\{[^{}]*\}/g;

/** Returns the prompt without what may differ between two requests of a session: the marks of the cache, and what closes the JSON. */
function openEnd(text: string): string {
  const prompt = text.slice(Math.max(0, text.indexOf('"tools":')));
  return prompt.replaceAll(MARK, "").replace(/[\]}]+$/, "");
}

/** How many characters both texts share at their beginning. */
function countShared(one: string, other: string): number {
  let at = 0;
  while (at < one.length && one[at] === other[at]) at += 1;
  return at;
}

/** Measures how much of a turn's input the next turn of the sitting repeats. Returns the smallest share. */
export function measureShare(turns: ScriptedTask["turns"]): number {
  const shares = turns.flatMap(({ sitting, text }, at) => {
    const next = turns[at + 1];
    if (next === undefined || next.sitting !== sitting) return [];
    const own = openEnd(text);
    return [countShared(own, openEnd(next.text)) / own.length];
  });
  return Math.min(...shares);
}
