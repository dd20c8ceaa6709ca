// Turns one edit of the config file into a splice of its text, so that all other
// bytes stay as the user wrote them. A splice is a guess at the user's style:
// edit.ts checks that the new text means what it should.

import {
  type Document,
  isCollection,
  isMap,
  isScalar,
  isSeq,
  type Pair,
  stringify,
  type YAMLMap,
  type YAMLSeq,
} from "yaml";
import { isObject } from "../../lib/json/json.ts";
import type { Path } from "./source.ts";

/** Scalars, lists and maps of them. Scalars are source texts, as everywhere before the schema reads them. */
export type Value = string | readonly string[] | { readonly [name: string]: Value };

export type Edit =
  | { readonly kind: "set"; readonly path: Path; readonly value: Value }
  | { readonly kind: "append"; readonly path: Path; readonly values: readonly Value[] }
  | { readonly kind: "remove"; readonly path: Path };

interface Splice {
  readonly start: number;
  readonly end: number;
  readonly text: string;
}

/** Null if this file does not know the user's style. */
export function findSplice(text: string, document: Document.Parsed, edit: Edit): Splice | null {
  const last = edit.path.at(-1);
  const parent: unknown =
    edit.path.length === 1 ? document.contents : document.getIn(edit.path.slice(0, -1), true);
  if (last === undefined || !isCollection(parent)) return null;
  const name = String(last);
  if (edit.kind === "remove") {
    return isMap(parent) ? removePair(text, parent, name) : removeItem(text, parent, Number(last));
  }
  if (!isMap(parent)) return null;
  return edit.kind === "set"
    ? setPair(text, parent, { name, value: edit.value })
    : appendItems(text, parent, { name, items: edit.values });
}

function setPair(text: string, map: YAMLMap, { name, value }: { name: string; value: Value }): Splice | null {
  const scalar = renderValue(value);
  const pair = findPair(map, name);
  if (pair === undefined) return insertPair(text, map, `${name}: ${scalar}`, isObject(value));
  if (isCollection(pair.value)) {
    const old = { start: afterColon(text, pair), end: contentEnd(text, pair.value) };
    // A comment inside would be lost: edit.ts changes single items instead.
    return text.slice(old.start, old.end).includes("#") ? null : { ...old, text: ` ${scalar}` };
  }
  if (!isScalar(pair.value)) return null;
  const { start, end } = spanOf(pair.value);
  return start === end ? insertAt(afterColon(text, pair), ` ${scalar}`) : { start, end, text: scalar };
}

function insertPair(text: string, map: YAMLMap, line: string, isEntry: boolean): Splice | null {
  const { start, end } = spanOf(map);
  const last = map.items.at(-1);
  if (map.flow === true) {
    if (last === undefined) return { start, end, text: `{ ${line} }` };
    return insertAt(contentEnd(text, last), `, ${line}`);
  }
  const indent = " ".repeat(start - lineStart(text, start));
  // A setting goes before the sections of its entry, an entry or section to the end.
  const before = map.items.findLast((pair) => isOneLine(text, pair)) ?? (isEntry ? last : undefined);
  if (before === undefined) return insertAt(start, line + eolOf(text) + indent);
  return insertAt(lineEnd(text, contentEnd(text, before)), eolOf(text) + indent + line);
}

interface Addition {
  readonly name: string;
  readonly items: readonly Value[];
}

function appendItems(text: string, map: YAMLMap, addition: Addition): Splice | null {
  const pair = findPair(map, addition.name);
  if (pair === undefined) return appendSection(text, map, addition);
  const list = pair.value;
  if (isSeq(list) && list.items.length > 0) return appendToList(text, list, addition.items);
  if (!isSeq(list) && !(isScalar(list) && list.value === null)) return null;
  const { start, end } = spanOf(list);
  if (map.flow === true) return { start, end, text: `[${renderAll(addition.items, ", ")}]` };
  const lines = beginLines(text, "  ", addition.items);
  if (start === end) return insertAt(lineEnd(text, afterColon(text, pair)), lines);
  const gap = /[ \t]*$/.exec(text.slice(0, start))?.[0].length ?? 0;
  return { start: start - gap, end, text: lines };
}

function appendSection(text: string, map: YAMLMap, { name, items }: Addition): Splice | null {
  if (map.flow === true) return insertPair(text, map, `${name}: [${renderAll(items, ", ")}]`, true);
  const eol = eolOf(text);
  const gap = text.endsWith("\n") ? "" : eol;
  return insertAt(text.length, `${gap}${name}:${beginLines(text, "  ", items)}${eol}`);
}

function appendToList(text: string, list: YAMLSeq, items: readonly Value[]): Splice {
  const eol = eolOf(text);
  const last = list.items.at(-1);
  const first = spanOf(last).start;
  const indent = text.slice(lineStart(text, first), first);
  if (list.flow === true) {
    const start = spanOf(last).end;
    const isAlone = indent.trim() === "" && indent.length < first;
    const gap = isAlone ? eol + indent : " ";
    const end = lineEnd(text, start);
    const tail = text.slice(start, end);
    // A comment after the last item belongs to that item.
    const [, comma] = (isAlone ? /^[ \t]*(,?)[ \t]*(?:#.*)?$/.exec(tail) : null) ?? [];
    if (comma === undefined) return insertAt(start, `,${gap}${renderAll(items, `,${gap}`)}`);
    const own = comma === "" ? `,${tail}` : tail;
    return { start, end, text: `${own}${gap}${renderAll(items, `,${gap}`)}${comma}` };
  }
  const dash = text.lastIndexOf("-", first - 1);
  const margin = text.slice(lineStart(text, dash), dash);
  const isBlock = isMap(last) && last.flow !== true;
  const lines = isBlock ? beginBlocks(text, margin, items) : beginLines(text, margin, items);
  return insertAt(lineEnd(text, contentEnd(text, last)), lines);
}

/** One line for each item. A line begins with its line break. */
function beginLines(text: string, margin: string, items: readonly Value[]): string {
  return items.map((item) => `${eolOf(text)}${margin}- ${renderValue(item)}`).join("");
}

function beginBlocks(text: string, margin: string, items: readonly Value[]): string {
  const eol = eolOf(text);
  const writeBlock = (item: Value) =>
    isObject(item)
      ? Object.entries(item)
          .map(([name, value]) => `${name}: ${renderValue(value)}`)
          .join(`${eol}${margin}  `)
      : renderValue(item);
  return items.map((item) => `${eol}${margin}- ${writeBlock(item)}`).join("");
}

function removeItem(text: string, list: unknown, index: number): Splice | null {
  const item = isSeq(list) ? list.items[index] : undefined;
  if (!isSeq(list) || item === undefined) return null;
  const span = { start: spanOf(item).start, end: contentEnd(text, item) };
  if (list.flow === true) return removeFromFlow(text, span);
  return removeLines(text, { start: text.lastIndexOf("-", span.start - 1), end: span.end });
}

function removePair(text: string, map: YAMLMap, name: string): Splice | null {
  const pair = findPair(map, name);
  if (pair === undefined) return null;
  const span = { start: spanOf(pair.key).start, end: contentEnd(text, pair) };
  if (map.flow === true) return removeFromFlow(text, span);
  const next = map.items[map.items.indexOf(pair) + 1];
  const sharesLine = text.slice(lineStart(text, span.start), span.start).trim() !== "";
  if (!sharesLine) return removeLines(text, span);
  return next === undefined ? null : { start: span.start, end: spanOf(next.key).start, text: "" };
}

interface Span {
  readonly start: number;
  readonly end: number;
}

function removeLines(text: string, { start, end }: Span): Splice | null {
  const from = lineStart(text, start);
  if (text.slice(from, start).trim() !== "") return null;
  const upTo = text.indexOf("\n", end);
  if (upTo >= 0) return { start: from, end: upTo + 1, text: "" };
  // The last line has no newline: remove the one before it.
  return { start: Math.max(from - eolOf(text).length, 0), end: text.length, text: "" };
}

/** Removes the element and one comma. */
function removeFromFlow(text: string, { start, end }: Span): Splice {
  const after = /^\s*,[ \t]*/.exec(text.slice(end))?.[0].length;
  if (after !== undefined) return { start, end: end + after, text: "" };
  const before = /,\s*$/.exec(text.slice(0, start))?.[0].length ?? 0;
  return { start: start - before, end, text: "" };
}

function findPair(map: YAMLMap, name: string): Pair | undefined {
  return map.items.find((pair) => isScalar(pair.key) && pair.key.value === name);
}

/** One line of YAML. */
export function renderValue(value: Value): string {
  return stringify(value, {
    schema: "failsafe",
    customTags: ["null"],
    collectionStyle: typeof value === "string" ? "any" : "flow",
    lineWidth: 0,
  }).trimEnd();
}

function renderAll(items: readonly Value[], gap: string): string {
  return items.map(renderValue).join(gap);
}

function spanOf(node: unknown): Span {
  const range = isScalar(node) || isCollection(node) ? node.range : null;
  // A wrong offset makes a text that does not pass the check in edit.ts.
  return { start: range?.[0] ?? 0, end: range?.[1] ?? 0 };
}

/** The end of a node or pair, without the comments and blank lines after it. */
function contentEnd(text: string, node: unknown): number {
  if (isObject(node) && "key" in node) {
    const value = node["value"];
    return contentEnd(text, value ?? node["key"]);
  }
  const { start, end } = spanOf(node);
  if (isCollection(node) && node.flow !== true && node.items.length > 0)
    return contentEnd(text, node.items.at(-1));
  return start + text.slice(start, end).trimEnd().length;
}

function afterColon(text: string, pair: Pair): number {
  return text.indexOf(":", spanOf(pair.key).end) + 1;
}

function isOneLine(text: string, pair: Pair): boolean {
  if (!isScalar(pair.value)) return false;
  const start = spanOf(pair.key).start;
  return !text.slice(start, spanOf(pair.value).end).includes("\n");
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

/** The offset of the line break, which may be CR LF. */
function lineEnd(text: string, offset: number): number {
  const end = text.indexOf("\n", offset);
  if (end < 0) return text.length;
  return text[end - 1] === "\r" ? end - 1 : end;
}
