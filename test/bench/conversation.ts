// A conversation of 170 KB as Claude Code sends it, with the same members in the same order, and the same marks for the
// cache, which move from turn to turn. Each turn has two messages more than the one before.

/** The sizes of a long session: tools, system prompt and messages. */
const TOOLS = 26;
const TOOL_TEXT = 1100;
const SYSTEM_TEXT = 11_000;
const RESULT_TEXT = 1250;
const FIRST_MESSAGES = 62;
/** The number of turns of a session. */
export const TURNS = 30;

const EPHEMERAL = { type: "ephemeral" };
const PROSE =
  'Reads the file at "path" and returns its lines.\n\n- Use an absolute path, never a relative one.\n- With `offset`, it begins there; "limit" ends it.\n';
const CODE =
  '   142\t  const found = this.#rows.get("name") ?? null;\n   143\t  if (found === null) throw new Error(`no row of \\"${name}\\"`);\n   144\t\n';

type Json = Record<string, unknown>;

function textOf(sample: string, length: number, at: number): string {
  return `${at}: ${sample.repeat(Math.ceil(length / sample.length)).slice(0, length)}`;
}

function writeTool(at: number): Json {
  const properties = Object.fromEntries(
    ["file_path", "offset", "limit", "pattern", "output_mode", "head_limit"].map((name) => [
      name,
      { description: textOf("What it is for, in a line. ", 80, at), type: "string", enum: ["a", "b"] },
    ]),
  );
  return {
    name: `Tool${at}`,
    description: textOf(PROSE, TOOL_TEXT, at),
    input_schema: {
      $schema: "https://json-schema.org/draft/2020-12/schema",
      type: "object",
      properties,
      required: ["file_path"],
      additionalProperties: false,
    },
  };
}

const tools = Array.from({ length: TOOLS }, (_, at) => writeTool(at));

/** The mark for the cache is in the last block of the last message. */
function writeMessage(at: number, seed: string, isLast: boolean): Json {
  const mark = isLast ? { cache_control: EPHEMERAL } : {};
  if (at === 0) {
    const reminder = `<system-reminder>\n${textOf(PROSE, 5000, at)}\n</system-reminder>`;
    // The upstream of the benchmark reads in this text what it has to do.
    const text = `bench:turn ${seed} Find out why the build fails.`;
    return {
      role: "user",
      content: [
        { type: "text", text },
        { type: "text", text: reminder, ...mark },
      ],
    };
  }
  const id = `toolu_01${seed.slice(0, 8)}${String((at + 1) >> 1).padStart(12, "0")}`;
  if (at % 2 === 1) {
    const input = { file_path: `/home/user/project/src/part-${at}/file.ts`, offset: at, limit: 200 };
    return {
      role: "assistant",
      content: [
        { type: "text", text: textOf("I look at the next file. ", 120, at) },
        { type: "tool_use", id, name: `Tool${at % TOOLS}`, input },
      ],
    };
  }
  const content = [{ tool_use_id: id, type: "tool_result", content: textOf(CODE, RESULT_TEXT, at), ...mark }];
  return { role: "user", content };
}

/** The body of a turn, counted from 0. `session`: an id with 36 characters. */
export function writeTurn(model: string, session: string, turn: number): string {
  const count = FIRST_MESSAGES + 1 + 2 * turn;
  const line = `x-anthropic-billing-header: cc_version=2.1.332.a1b; cc_entrypoint=cli; cch=${(turn + 4096).toString(16)}1;`;
  return JSON.stringify({
    model,
    messages: Array.from({ length: count }, (_, at) => writeMessage(at, session, at === count - 1)),
    system: [
      { type: "text", text: line },
      { type: "text", text: "You are Claude Code.", cache_control: EPHEMERAL },
      { type: "text", text: textOf(PROSE, SYSTEM_TEXT, 0), cache_control: EPHEMERAL },
    ],
    tools,
    metadata: {
      user_id: JSON.stringify({ device_id: "d".repeat(64), account_uuid: "", session_id: session }),
    },
    max_tokens: 32_000,
    thinking: { type: "adaptive", display: "summarized" },
    context_management: { edits: [{ type: "clear_thinking_20251015", keep: "all" }] },
    output_config: { effort: "high" },
    stream: true,
  });
}
