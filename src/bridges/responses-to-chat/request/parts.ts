// Content parts of chat messages → content parts of input items, one to one: a part has the same index on both sides.

import { isObject, lookUp } from "../../../lib/json/json.ts";
import {
  isAbsent,
  type Json,
  pickPresent,
  readString,
  refuse,
  refuseType,
  refuseUnsupported,
  refuseValue,
  rejectUnknown,
  requireList,
  requireRecord,
  requireString,
} from "../../common/strict-json.ts";

const BREAKPOINT = "prompt_cache_breakpoint";
const TEXT_KEYS = new Set(["type", "text", BREAKPOINT]);
const IMAGE_KEYS = new Set(["type", "image_url", BREAKPOINT]);
const IMAGE_URL_KEYS = new Set(["url", "detail"]);
const FILE_KEYS = new Set(["type", "file", BREAKPOINT]);
const FILE_FIELDS = ["file_id", "filename", "file_data"];

type PartRule = (part: Json, path: string) => Json;
type PartRules = Readonly<Record<string, PartRule>>;

const TEXT_ONLY: PartRules = { text: convertText };
const ANY_INPUT: PartRules = {
  text: convertText,
  image_url: convertImage,
  file: convertFile,
  input_audio: refuseAudio,
};
/** Responses accepts no cache breakpoints in an assistant's output. */
const ASSISTANT_PARTS: PartRules = {
  text: (part, path) => {
    rejectUnknown(part, TEXT_KEYS, path);
    if (!isAbsent(part[BREAKPOINT])) refuseUnsupported(`${path}.${BREAKPOINT}`);
    return { type: "output_text", text: requireString(part["text"], `${path}.text`) };
  },
  refusal: (part, path) => {
    rejectUnknown(part, new Set(["type", "refusal"]), path);
    return { type: "refusal", refusal: requireString(part["refusal"], `${path}.refusal`) };
  },
};

/** Instructions can only be text. */
export function convertInstructions(content: unknown, path: string): string | Json[] {
  return convertContent(content, path, TEXT_ONLY);
}

/** The content of users and tools: text, images and files. */
export function convertInput(content: unknown, path: string): string | Json[] {
  return convertContent(content, path, ANY_INPUT);
}

/** The assistant's text and refusal. Null if there is neither. */
export function convertAssistantContent(message: Json, path: string): string | Json[] | null {
  const refusal = readString(message["refusal"], `${path}.refusal`);
  const { content } = message;
  const parts = isAbsent(content) ? null : convertContent(content, `${path}.content`, ASSISTANT_PARTS);
  if (refusal !== null && refusal !== "") return [...listParts(parts), { type: "refusal", refusal }];
  const only = Array.isArray(parts) && parts.length === 1 ? parts[0] : undefined;
  return typeof only?.["text"] === "string" ? only["text"] : parts;
}

function listParts(parts: string | Json[] | null): Json[] {
  if (typeof parts === "string") return parts === "" ? [] : [{ type: "output_text", text: parts }];
  return parts ?? [];
}

function convertContent(content: unknown, path: string, rules: PartRules): string | Json[] {
  if (typeof content === "string") return content;
  if (!Array.isArray(content)) refuseType(path, "one of a string or array of objects", content);
  return requireList(content, path).map((part, index) => convertPart(part, `${path}[${index}]`, rules));
}

function convertPart(value: unknown, path: string, rules: PartRules): Json {
  const part = requireRecord(value, path);
  const type = requireString(part["type"], `${path}.type`);
  const rule = lookUp(rules, type);
  if (rule === undefined) refuseValue(`${path}.type`, type, Object.keys(rules));
  return rule(part, path);
}

function convertText(part: Json, path: string): Json {
  rejectUnknown(part, TEXT_KEYS, path);
  return {
    type: "input_text",
    text: requireString(part["text"], `${path}.text`),
    ...pickPresent(part, [BREAKPOINT]),
  };
}

function convertImage(part: Json, path: string): Json {
  rejectUnknown(part, IMAGE_KEYS, path);
  const image = requireRecord(part["image_url"], `${path}.image_url`);
  rejectUnknown(image, IMAGE_URL_KEYS, `${path}.image_url`);
  return {
    type: "input_image",
    image_url: requireString(image["url"], `${path}.image_url.url`),
    detail: image["detail"] ?? "auto",
    ...pickPresent(part, [BREAKPOINT]),
  };
}

function convertFile(part: Json, path: string): Json {
  rejectUnknown(part, FILE_KEYS, path);
  const file = requireRecord(part["file"], `${path}.file`);
  rejectUnknown(file, new Set(FILE_FIELDS), `${path}.file`);
  return { type: "input_file", ...pickPresent(file, FILE_FIELDS), ...pickPresent(part, [BREAKPOINT]) };
}

/** Responses accepts no audio. The native endpoint's error names the message, not the part. */
function refuseAudio(part: Json, path: string): never {
  if (!isObject(part["input_audio"])) refuseType(`${path}.input_audio`, "an object", part["input_audio"]);
  const message = path.slice(0, path.indexOf(".content"));
  const expected = "Content blocks are expected to be either text or image_url type.";
  return refuse("invalid_value", message, `Invalid '${message}'. ${expected}`);
}
