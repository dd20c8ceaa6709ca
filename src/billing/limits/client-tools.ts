// Which parts of a request are input as they stand: tools that run at the client, and what tools were called with. A tool
// of any other form may run at the provider, where it adds input and fees.

import {
  eachElement,
  eachMember,
  OPEN_BRACE,
  OPEN_BRACKET,
  readString,
  type Span,
} from "../../lib/json/scanner.ts";
import { scanMembers } from "../../lib/scan.ts";
import { escapeUnprintable } from "../../lib/text/printable.ts";

/** The forms of the tools that run at the client, in one dialect. */
export interface ClientTools {
  /** Where a tool has the name of its form: in `type`, or in the names of its members. */
  readonly namedBy: "type" | "members";
  /** A tool without a type, but with a schema, has the name "". */
  readonly names: RegExp;
  /** For forms that may run at the provider, too: the member that says where, and its value for the client. */
  readonly places?: ReadonlyMap<string, readonly [member: string, value: string]>;
}

export interface ToolReading {
  /** A tool that may run at the provider, as messages name it. */
  readonly hosted: string | null;
  /** An item whose content the provider may have stored, as messages name it. */
  readonly stored: string | null;
  /** The request or its conversation has a list of tools. */
  readonly hasTools: boolean;
  /** Tools of the client, and the arguments and results of calls. Whatever is in them, the provider fetches nothing for
   *  it. They are apart, and in their order. */
  readonly parts: readonly Span[];
}

const CONVERSATIONS: ReadonlySet<string> = new Set(["messages", "input", "contents"]);
const LISTS: ReadonlySet<string> = new Set(["content", "parts"]);
/** A conversation has messages, and messages have parts. */
const MAX_DEPTH = 1;

/** Where a body has something twice, both are read. */
export function readTools(body: Uint8Array, known: ClientTools): ToolReading {
  let hosted: string | null = null;
  let stored: string | null = null;
  let hasTools = false;
  const parts: Span[] = [];
  const judge = (start: number): boolean => {
    hasTools = true;
    const found = findHostedTool(body, start, known);
    hosted ??= found;
    return found === null;
  };
  const collect = (part: Span, depth: number): true => {
    if (body[part.start] !== OPEN_BRACE) return true;
    parts.push(...findParts(body, part, judge));
    stored ??= findStored(body, part);
    if (depth < MAX_DEPTH)
      eachMember(body, part.start, (name, { start }) => {
        if (LISTS.has(name)) eachElement(body, start, (element) => collect(element, depth + 1));
        return true;
      });
    return true;
  };
  eachMember(body, body.indexOf(OPEN_BRACE), (name, value) => {
    // Some upstreams accept a comma at the end of a list, which JSON does not allow. The tools of such a body are read, too.
    if (CONVERSATIONS.has(name)) eachElement(body, value.start, (element) => collect(element, 0));
    if (name === "tools" && body[value.start] !== NULL_START) {
      judge(value.start);
      parts.push(value);
    }
    return true;
  });
  return { hosted, stored, hasTools, parts: parts.toSorted((one, other) => one.start - other.start) };
}

const NULL_START = 0x6e;

const PART_FIELDS = [
  "type",
  "input",
  "tool",
  "tools",
  "functionCall",
  "function_call",
  "functionResponse",
  "function_response",
];
const CALLS: ReadonlySet<string> = new Set(["tool_use", "server_tool_use", "mcp_tool_use"]);
/** Items that bring in more tools: https://developers.openai.com/api/docs/guides/tools-tool-search */
const TOOL_LISTS: ReadonlySet<string> = new Set(["additional_tools", "tool_search_output"]);

/** Says whether all tools of a list, or one tool, run at the client. */
type Judge = (start: number) => boolean;

/** In a message, or in a part of one. */
function findParts(body: Uint8Array, part: Span, judge: Judge): Span[] {
  const members = findMembers(body, part, PART_FIELDS);
  if (members === null) return [];
  const type = members.get("type");
  const name = readName(body, type) ?? "";
  const of = (member: string, inner: string): Span[] => {
    const span = members.get(member);
    const found = span === undefined ? undefined : findMembers(body, span, [inner])?.get(inner);
    return found === undefined ? [] : [found];
  };
  const found = ["functionCall", "function_call"].flatMap((member) => of(member, "args"));
  found.push(...["functionResponse", "function_response"].flatMap((member) => of(member, "response")));
  const [input, tool, tools] = ["input", "tool", "tools"].map((member) => members.get(member));
  if (CALLS.has(name) && input !== undefined) found.push(input);
  if (name === "tool_addition" && tool !== undefined) found.push(...findDefinition(body, tool, judge));
  if (TOOL_LISTS.has(name) && type !== undefined && tools !== undefined)
    if (judge(tools.start)) found.push(type, tools);
  return found;
}

/** If a reasoning item does not contain the thoughts, its id stands for those that the provider has stored:
 *  https://platform.openai.com/docs/guides/reasoning#keeping-reasoning-items-in-context */
function findStored(body: Uint8Array, item: Span): string | null {
  const members = findMembers(body, item, ["type", "id", "encrypted_content", "content"]);
  if (members === null) return "an item with a member in more than one spelling";
  if (readName(body, members.get("type")) !== "reasoning" || !members.has("id")) return null;
  const isAbsent = (name: string): boolean => {
    const span = members.get(name);
    return readName(body, span) === "" || (span !== undefined && isEmptyList(body, span));
  };
  return isAbsent("encrypted_content") && isAbsent("content")
    ? 'a reasoning item without "encrypted_content"'
    : null;
}

const CLOSE_BRACKET = 0x5d;

function isEmptyList(body: Uint8Array, { start, end }: Span): boolean {
  return (
    body[start] === OPEN_BRACKET &&
    body.subarray(start + 1, end).find((byte) => byte > 0x20) === CLOSE_BRACKET
  );
}

/** https://platform.claude.com/docs/en/build-with-claude/mid-conversation-system-messages */
function findDefinition(body: Uint8Array, tool: Span, judge: Judge): Span[] {
  const members = findMembers(body, tool, ["type", "definition"]);
  const [type, definition] = [members?.get("type"), members?.get("definition")];
  if (type === undefined || definition === undefined) return [];
  return judge(definition.start) ? [type, definition] : [];
}

const UNKNOWN = "a tool of an unknown form";
const TOOL_FIELDS = ["type", "environment", "execution", "tools", "input_schema"];
/** The groups of a namespace have nothing else. */
const GROUPED: ClientTools = { namedBy: "type", names: /^(?:function|custom)$/ };

/** `start` is that of a list of tools, or of a tool. Null: all of them run at the client. */
function findHostedTool(body: Uint8Array, start: number, known: ClientTools): string | null {
  const check = known.namedBy === "type" ? checkType : checkMembers;
  let hosted: string | null = null;
  const isRead = eachElement(body, start, (tool) => {
    hosted = check(body, tool, known);
    return hosted === null;
  });
  return hosted ?? (isRead ? null : UNKNOWN);
}

function checkType(body: Uint8Array, tool: Span, known: ClientTools): string | null {
  const members = findMembers(body, tool, TOOL_FIELDS);
  const type = members === null ? null : readName(body, members.get("type"));
  if (members === null || type === null) return UNKNOWN;
  if (type === "")
    return members.has("input_schema") && known.names.test("") ? null : "a tool without a type";
  const grouped = members.get("tools");
  if (!known.names.test(type) || !isAtClient(body, members, known.places?.get(type))) return describe(type);
  return type === "namespace" && grouped !== undefined ? findHostedTool(body, grouped.start, GROUPED) : null;
}

/** The member is either a word or an object with a type. */
function isAtClient(
  body: Uint8Array,
  members: ReadonlyMap<string, Span>,
  place: readonly [member: string, value: string] | undefined,
): boolean {
  if (place === undefined) return true;
  const [member, value] = place;
  const span = members.get(member);
  const isWord = span === undefined || body[span.start] !== OPEN_BRACE;
  return readName(body, isWord ? span : findMembers(body, span, ["type"])?.get("type")) === value;
}

function checkMembers(body: Uint8Array, tool: Span, known: ClientTools): string | null {
  let hosted: string | null = null;
  const isRead = eachMember(body, tool.start, (name) => {
    if (!known.names.test(name)) hosted = describe(name);
    return hosted === null;
  });
  return hosted ?? (isRead ? null : UNKNOWN);
}

const MAX_SHOWN_CHARACTERS = 64;

function describe(name: string): string {
  return `the tool "${escapeUnprintable(name.slice(0, MAX_SHOWN_CHARACTERS))}"`;
}

/** "": there is none. Null: it is not text. */
function readName(body: Uint8Array, span: Span | undefined): string | null {
  return span === undefined || body[span.start] === NULL_START ? "" : readString(body, span);
}

/** Members of an object. Null if it is none, or if other parsers could read others. */
function findMembers(
  body: Uint8Array,
  { start, end }: Span,
  names: readonly string[],
): ReadonlyMap<string, Span> | null {
  const spellings = names.map((name) => name.toLowerCase());
  const scan = scanMembers(body.subarray(start, end), names, spellings);
  if (scan === null || scan.repeated.size > 0) return null;
  const found = new Map<string, Span>();
  for (const name of names) {
    const span = scan.get(name);
    if (span !== undefined) found.set(name, { start: span.start + start, end: span.end + start });
  }
  return scan.spellings === found.size ? found : null;
}
