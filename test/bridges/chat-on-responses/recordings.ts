// The recorded traffic beside the project, read in place, and what its manifest expects of it.

import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { getField, isObject } from "../../../src/lib/json/json.ts";
import { PLAIN, type Wanted } from "./direction.ts";
import { isThere } from "../../harness/needs.ts";

const FOLDER = new URL("../../../../shared/fixtures/", import.meta.url);
export const absent = !isThere("recordings");

interface Expected {
  text: { sha256: string; len: number } | null;
  delta_text_matches: boolean | null;
  refusal: { value: string } | null;
  tool_calls: { id: string; name: string; arguments?: string; custom_input?: string }[];
  items: string[] | null;
  status: string | null;
  error: { code: string | null; message: string } | null;
  expected_chat_finish_reason?: string | null;
  usage_final: Record<string, unknown> | null;
  choices?: { finish_reason: string | null }[];
}

export interface Recording {
  id: string;
  family: string;
  file: string;
  kind: string;
  native: boolean;
  stream: boolean;
  status: number;
  url_path: string;
  request_file?: string;
  request_elided?: boolean;
  expect: Expected;
}

interface Pair {
  pair: string;
  chat: string;
  responses: string;
}

interface Manifest {
  fixtures: Recording[];
  pairs: Pair[];
}

function readManifest(): Manifest {
  if (absent) return { fixtures: [], pairs: [] };
  return JSON.parse(readFileSync(new URL("manifest.json", FOLDER), "utf8"));
}

const manifest = readManifest();

export const pairs = manifest.pairs;

export function listRecordings(family: string): Recording[] {
  return manifest.fixtures.filter((each) => each.family === family);
}

export function findRecording(id: string): Recording {
  const found = manifest.fixtures.find((each) => each.id === id);
  if (found === undefined) throw new Error(`no recording ${id}`);
  return found;
}

export function readBytes(recording: Recording): Uint8Array {
  return readFileSync(new URL(recording.file, FOLDER));
}

export function readRequest(recording: Recording): unknown {
  if (recording.request_file === undefined) return null;
  return JSON.parse(readFileSync(new URL(recording.request_file, FOLDER), "utf8"));
}

/** The data of a stream's events. */
export function readEvents(bytes: Uint8Array): unknown[] {
  const text = new TextDecoder().decode(bytes).replaceAll("\r\n", "\n");
  return text
    .split("\n\n")
    .flatMap((block) => block.split("\n").filter((line) => line.startsWith("data:")))
    .map((line) => line.slice(5).trim())
    .filter((line) => line !== "[DONE]" && line !== "")
    .map((line): unknown => JSON.parse(line));
}

/** The response with which a stream ends. */
export function readTerminal(bytes: Uint8Array): Record<string, unknown> | null {
  const last = readEvents(bytes).findLast((event) =>
    ["response.completed", "response.incomplete", "response.failed"].includes(
      String(getField(event, "type")),
    ),
  );
  const response = getField(last, "response");
  return isObject(response) ? { ...response } : null;
}

/** As if the recorded Responses request had been asked through the bridge. */
export function contextOf(recording: Recording): Wanted {
  const request = readRequest(recording);
  const format = getField(getField(getField(request, "text"), "format"), "type");
  const include = getField(request, "include");
  return {
    ...PLAIN,
    forced: isObject(getField(request, "tool_choice")),
    json: format === "json_schema" || format === "json_object",
    logprobs: Array.isArray(include) && include.includes("message.output_text.logprobs"),
  };
}

export function hashText(text: string): string {
  return createHash("sha256").update(text).digest("hex").slice(0, 24);
}
