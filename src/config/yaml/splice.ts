// Turns an edit into a splice of the text.
// It guesses the user's style: edit.ts checks the result.

import {
  type Document,
  isCollection,
  isMap,
  isScalar,
  isSeq,
  stringify,
  type YAMLMap,
  type YAMLSeq,
} from "yaml";
import { isObject } from "../../lib/json/json.ts";
import type { Path } from "./source.ts";

/** A string is written as it is: "5" becomes the number 5 in the file. */
export type Value = string | readonly string[] | { readonly [name: string]: Value };

export type Edit =
  | { readonly kind: "set"; readonly path: Path; readonly value: Value }
  | { readonly kind: "append"; readonly path: Path; readonly values: readonly Value[] }
  | { readonly kind: "remove"; readonly path: Path };

export interface Splice {
  readonly start: number;
  readonly end: number;
  readonly text: string;
}

/** A pair of a map, or an item of a list. It starts at the key or the dash. */
interface Entry {
  readonly name: string;
  readonly start: number;
  readonly end: number;
  readonly afterColon: number;
  readonly value: unknown;
}

type Collection = YAMLMap | YAMLSeq;

/** Null: the user's YAML is not understood. */
export function findSplice(text: string, document: Document.Parsed, edit: Edit): Splice | null {
  const around = edit.path.slice(0, -1);
  const parent: unknown = around.length === 0 ? document.contents : document.getIn(around, true);
  if (!isMap(parent) && !isSeq(parent)) return null;
  const name = String(edit.path.at(-1));
  const entries = listEntries(text, parent);
  const at = entries.findIndex((entry) => entry.name === name);
  const entry = entries[at];
  if (edit.kind === "remove") return entry ? remove(text, parent, entry, entries[at + 1]) : null;
  if (edit.kind === "append") return append(text, parent, name, edit.values);
  const inFlow = parent.flow === true;
  const rendered = renderValue(edit.value, inFlow);
  if (entry !== undefined) return replace(text, entry, rendered);
  // A new setting goes after the last one that has a single line.
  const short = entries.findLast(({ start, end }) => !text.slice(start, end).includes("\n"));
  const after = short ?? (isObject(edit.value) ? entries.at(-1) : undefined);
  return insert(text, parent, [`${renderValue(name, inFlow)}: ${rendered}`], after);
}

/** Keeps each list's entries, because many edits ask for them. */
const known = new WeakMap<Collection, Entry[]>();

function listEntries(text: string, around: Collection): Entry[] {
  return known.getOrInsertComputed(around, () => readEntries(text, around));
}

function readEntries(text: string, around: Collection): Entry[] {
  if (isSeq(around))
    return around.items.map((value, index) => {
      const { start, end } = spanOf(text, value);
      const dash = around.flow === true ? start : text.lastIndexOf("-", start - 1);
      return {
        name: String(index),
        start: dash,
        end,
        afterColon: start,
        value,
      };
    });
  return around.items.map(({ key, value }) => {
    const { start, end } = spanOf(text, key);
    const afterColon = text.indexOf(":", end) + 1;
    const name = isScalar(key) ? String(key.value) : "";
    return {
      name,
      start,
      end: Math.max(end, spanOf(text, value).end),
      afterColon,
      value,
    };
  });
}

function replace(text: string, { afterColon, end, value }: Entry, rendered: string): Splice | null {
  const old = text.slice(afterColon, end);
  // A comment inside would be lost: edit.ts changes single items instead.
  if (isCollection(value) && old.includes("#")) return null;
  const gap = /^ +(?=\S)/.exec(old)?.[0] ?? " ";
  return {
    start: afterColon,
    end: Math.max(afterColon, end),
    text: gap + rendered,
  };
}

function insert(
  text: string,
  around: Collection,
  lines: readonly string[],
  after: Entry | undefined,
): Splice {
  if (around.flow === true) return insertIntoFlow(text, around, lines);
  const [first] = listEntries(text, around);
  const start = first?.start ?? 0;
  const gap = eolOf(text) + " ".repeat(start - lineStart(text, start));
  const all = lines.join("\n").replaceAll("\n", gap);
  if (after === undefined) return insertAt(start, all + gap);
  return insertAt(lineEnd(text, after.end), gap + all);
}

/** A comment after the last entry belongs to that entry. */
function insertIntoFlow(text: string, around: Collection, parts: readonly string[]): Splice {
  const { start, end } = spanOf(text, around);
  const last = listEntries(text, around).at(-1);
  const [open, close] = isMap(around) ? ["{ ", " }"] : ["[", "]"];
  if (last === undefined)
    return {
      start,
      end,
      text: open + parts.join(", ") + close,
    };
  const margin = text.slice(lineStart(text, last.start), last.start);
  const gap = margin.trim() === "" && margin.length < last.start ? eolOf(text) + margin : " ";
  const [, kept = "", blanks = ""] = /^(.*?)(\s*)$/s.exec(text.slice(last.end, end - 1)) ?? [];
  const hasComma = /^\s*,/.test(kept);
  const [before, behind] = hasComma ? ["", ","] : [",", ""];
  const added = gap + parts.join(`,${gap}`);
  return {
    start: last.end,
    end: end - 1,
    text: before + kept + added + behind + blanks,
  };
}

function append(text: string, map: Collection, name: string, items: readonly Value[]): Splice | null {
  if (!isMap(map)) return null;
  const entry = listEntries(text, map).find((each) => each.name === name);
  const list = entry?.value;
  if (isSeq(list) && list.items.length > 0) return appendToList(text, list, items);
  const flow = `[${items.map((item) => renderValue(item, true)).join(", ")}]`;
  if (map.flow === true)
    return entry ? replace(text, entry, flow) : insertIntoFlow(text, map, [`${name}: ${flow}`]);
  const eol = eolOf(text);
  const lines = items.map((item) => `${eol}  - ${renderValue(item)}`).join("");
  if (entry === undefined)
    return insertAt(text.length, `${text.endsWith("\n") ? "" : eol}${name}:${lines}${eol}`);
  if (!isSeq(list) && !(isScalar(list) && list.value === null)) return null;
  const end = Math.max(entry.afterColon, entry.end);
  const rest = text.slice(end, lineEnd(text, end));
  return {
    start: entry.afterColon,
    end: end + rest.length,
    text: rest + lines,
  };
}

function appendToList(text: string, list: YAMLSeq, items: readonly Value[]): Splice {
  const last: unknown = list.items.at(-1);
  const isBlock = isMap(last) && last.flow !== true;
  const inFlow = list.flow === true;
  const lines = items.map((item) => (isBlock ? renderBlock(item) : renderValue(item, inFlow)));
  const listed = inFlow ? lines : lines.map((line) => `- ${line.replaceAll("\n", "\n  ")}`);
  return insert(text, list, listed, listEntries(text, list).at(-1));
}

function renderBlock(item: Value): string {
  if (!isObject(item)) return renderValue(item);
  return Object.entries(item)
    .map(([name, value]) => `${name}: ${renderValue(value)}`)
    .join("\n");
}

function remove(
  text: string,
  around: Collection,
  { start, end }: Entry,
  next: Entry | undefined,
): Splice | null {
  if (around.flow === true) return removeFromFlow(text, start, end);
  const from = lineStart(text, start);
  // The first setting of an item is on the line of the dash.
  if (text.slice(from, start).trim() !== "")
    return next === undefined ? null : { start, end: next.start, text: "" };
  const upTo = text.indexOf("\n", end);
  if (upTo >= 0) return { start: from, end: upTo + 1, text: "" };
  // The last line has no newline, so the newline before it is removed.
  return {
    start: Math.max(from - eolOf(text).length, 0),
    end: text.length,
    text: "",
  };
}

function removeFromFlow(text: string, start: number, end: number): Splice {
  const after = /^\s*,[ \t]*/.exec(text.slice(end))?.[0].length;
  if (after !== undefined) return { start, end: end + after, text: "" };
  const before = /,\s*$/.exec(text.slice(0, start))?.[0].length ?? 0;
  return { start: start - before, end, text: "" };
}

/** In a flow collection, a text with commas or brackets gets quotes. */
export function renderValue(value: Value, inFlow = false): string {
  return stringify(value, {
    schema: "failsafe",
    customTags: ["null"],
    collectionStyle: typeof value === "string" && !inFlow ? "any" : "flow",
    lineWidth: 0,
  }).trimEnd();
}

/** The span ends before a comment that follows the node. */
function spanOf(text: string, node: unknown): { readonly start: number; readonly end: number } {
  const [start = 0, end = 0] = (isScalar(node) || isCollection(node) ? node.range : null) ?? [];
  // An empty value has its range anywhere after the colon.
  if (start === end) return { start: 0, end: 0 };
  const last: unknown = isCollection(node) && node.flow !== true ? node.items.at(-1) : undefined;
  if (last === undefined) return { start, end: start + text.slice(start, end).trimEnd().length };
  const { key, value } = isObject(last) && "key" in last ? last : { key: last, value: null };
  return { start, end: Math.max(spanOf(text, key).end, spanOf(text, value).end) };
}

function insertAt(offset: number, text: string): Splice {
  return { start: offset, end: offset, text };
}

function eolOf(text: string): string {
  return text.includes("\r\n") ? "\r\n" : "\n";
}

function lineStart(text: string, offset: number): number {
  return text.lastIndexOf("\n", offset - 1) + 1;
}

function lineEnd(text: string, offset: number): number {
  const end = text.indexOf("\n", offset);
  if (end < 0) return text.length;
  return text[end - 1] === "\r" ? end - 1 : end;
}
