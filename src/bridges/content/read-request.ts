// A request of a content client → a conversation.

import {
  getField,
  getList,
  getText,
  isObject,
  listIn,
  type Table,
  textIn,
  textOf,
} from "../../lib/json/json.ts";
import type { ContentPart, Conversation, Result } from "../neutral/conversation.ts";
import type { FieldNode } from "../neutral/fields.ts";
import { type Json, refuseField, refuseStored, requireList, requireRecord } from "../neutral/notes.ts";
import { nameIn, type ReadingFor, readText, RequestReading, type Said } from "../neutral/read-request.ts";
import { CONTENT_FIELDS } from "./fields.ts";

export function readContentRequest(sent: Json, to: ReadingFor): Conversation {
  const body = spell(sent, CONTENT_FIELDS.root);
  const reading = new RequestReading("content", CONTENT_FIELDS, body, to);
  const { options } = reading;
  if (options.schema !== undefined) delete options.json;
  for (const tool of getList(body["tools"])) addTools(reading, requireRecord(tool, "tools"));
  const system = body["systemInstruction"];
  reading.say("system", typeof system === "string" ? readText(system) : readTexts(system));
  const calls = new CallIds();
  for (const [index, value] of requireList(body["contents"], "contents").entries())
    addContent(reading, value, calls, index);
  return reading;
}

/** Names may have underscores: https://protobuf.dev/programming-guides/json/ */
function spell(value: Json, { members }: FieldNode): Json {
  const entries = Object.entries(value).map(([sent, member]): [string, unknown] => {
    const name = sent.replaceAll(/_([a-z])/g, (_, letter) => letter.toUpperCase());
    const node = members.get(name);
    if (node === undefined || node.members.size === 0) return [name, member];
    const item = node.members.get("[]");
    if (Array.isArray(member))
      return [
        name,
        item === undefined ? member : member.map((each) => (isObject(each) ? spell(each, item) : each)),
      ];
    return [name, isObject(member) ? spell(member, node) : member];
  });
  return Object.fromEntries(entries);
}

function readTexts(content: unknown): ContentPart[] {
  return listIn(content, "parts").flatMap((part) => readText(getField(part, "text")));
}

function addTools(reading: RequestReading, tool: Json): void {
  const at = "tools[].functionDeclarations[]";
  for (const kind of Object.keys(tool)) {
    if (kind === "functionDeclarations")
      for (const declared of getList(tool[kind])) reading.addTool("function", declared, { at, place: at });
    else if (kind === "googleSearch")
      reading.addTool("search", {}, { at, place: at }, { name: "web_search" });
    else refuseField(`tools.${kind}`, "the channels of this group do not have this tool.");
  }
}

// Contents.

/** Most clients send no ids.
 *  A result then belongs to the first open call of its name. */
class CallIds {
  readonly #open = new Map<string, Set<string>>();

  call(id: unknown, name: string, place: string): string {
    const own = typeof id === "string" && id !== "" ? id : `call_${place}`;
    this.#openOf(name).add(own);
    return own;
  }

  result(id: unknown, name: string, place: string): string {
    const open = this.#openOf(name);
    const [first = `call_${place}`] = open;
    const own = typeof id === "string" && id !== "" ? id : first;
    open.delete(own);
    return own;
  }

  #openOf(name: string): Set<string> {
    const open = this.#open.get(name) ?? new Set();
    this.#open.set(name, open);
    return open;
  }
}

function addContent(reading: RequestReading, content: unknown, calls: CallIds, index: number): void {
  const role = getField(content, "role") === "model" ? "assistant" : "user";
  const said = listIn(content, "parts").flatMap((each, at) => {
    const part = isObject(each) ? each : {};
    const thoughts = readThoughts(reading, part["thoughtSignature"]);
    if (part["thought"] === true) return thoughts;
    return [...thoughts, ...readSaid(reading, part, calls, `${index}_${at}`)];
  });
  reading.say(role, said);
}

function readThoughts(reading: RequestReading, envelope: unknown): Said[] {
  return listIn(reading.openSeal(envelope), "thoughts").map((each) => {
    const seal = getField(each, "seal");
    return {
      type: "reasoning",
      text: textIn(each, "text"),
      seal: isObject(seal) ? { ...seal } : null,
    };
  });
}

function readSaid(reading: RequestReading, part: Json, calls: CallIds, place: string): Said[] {
  const { functionCall: call, functionResponse: response } = part;
  if (isObject(call)) {
    const name = nameIn(call, "name", "contents.parts.functionCall");
    const id = calls.call(call["id"], name, place);
    const input = JSON.stringify(call["args"] ?? {});
    return [{ type: "call", id, name, custom: false, input }];
  }
  if (!isObject(response)) return readPart(reading, part);
  const name = nameIn(response, "name", "contents.parts.functionResponse");
  return [readResult(reading, response, calls.result(response["id"], name, place))];
}

function readResult(reading: RequestReading, response: Table<unknown>, id: string): Result {
  const body = response["response"];
  const failed = getField(body, "error") !== undefined;
  const only = isObject(body) && Object.keys(body).length === 1 ? Object.values(body)[0] : undefined;
  const text = typeof only === "string" ? only : textOf(body ?? {});
  const media = getList(response["parts"]).flatMap((part) => readPart(reading, isObject(part) ? part : {}));
  return { type: "result", id, parts: [...readText(text), ...media], failed };
}

const STORED = /^gs:|^https:\/\/generativelanguage\.googleapis\.com\//;

function readPart(reading: RequestReading, part: Json): ContentPart[] {
  const { text, inlineData, fileData } = part;
  if (typeof text === "string") return readText(text);
  const { mimeType, data, fileUri } = requireRecord(inlineData ?? fileData ?? {}, "contents.parts");
  const [type, address] = [getText(mimeType), getText(fileUri)];
  const kind = type.startsWith("image/") ? "image" : "file";
  const at = "contents.parts";
  if (/^(?:audio|video)\//.test(type))
    refuseField(at, "the channels of this group take no sound and no film.");
  if (isObject(inlineData)) return [{ kind, at, url: `data:${type};base64,${getText(data)}`, name: null }];
  if (STORED.test(address)) refuseStored("contents.parts.fileData.fileUri");
  if (isObject(fileData)) return [{ kind, at, url: address, name: null }];
  reading.notes.add(`contents:${Object.keys(part).join("+")}`);
  return [];
}
