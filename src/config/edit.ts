// Changes the config file: under a lock, checked before it is written, whole or
// not at all, and with the user's comments, order and formatting kept. What a
// change looks like in the text is splice.ts.

import { closeSync, fsyncSync, openSync, realpathSync, statSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { type Document, isSeq } from "yaml";
import { codeOf } from "../lib/error-code.ts";
import { type FileLock, LockHeld, takeLock } from "../lib/file-lock.ts";
import { isObject } from "../lib/json/json.ts";
import { type Owner, removeDrafts, replaceFile, requireOwn } from "../lib/own-file.ts";
import type { Catalog } from "./catalog.ts";
import type { Environment } from "./expand.ts";
import { checkConfigText, readConfigText } from "./file.ts";
import { ConfigError } from "./problems.ts";
import { extractPlainKeys } from "./plain-keys.ts";
import { hasKeysAt, parseSource, parseYaml, type Path, readTree } from "./source.ts";
import { type Edit, findSplice } from "./splice.ts";

export type { Edit } from "./splice.ts";

const LOCK_WAIT_MS = 30_000;
/** How often an edit is begun anew because somebody without the lock, an editor say, wrote in between. */
const ROUNDS = 5;

/** `decide` sees the file as it is while the lock is held, says what is to change, and may throw to change nothing. */
export async function editConfig(
  path: string,
  env: Environment,
  decide: (catalog: Catalog) => readonly Edit[],
): Promise<void> {
  readConfigText(path);
  // Once: from here on all names are beside the file itself, and none of them is followed.
  const file = realpathSync(path);
  requireEditable(file);
  const lock = await waitForLock(nameLock(file), statSync(file));
  try {
    removeDrafts(file);
    for (let round = 0; round < ROUNDS; round += 1) {
      const before = readConfigText(file);
      const { catalog } = checkConfigText(before, path, env, { missing: "keep" });
      const after = applyEdits(before, decide(catalog));
      if (after === before) return;
      checkConfigText(after, path, env, { missing: "keep" });
      if (readConfigText(file) !== before) continue;
      replaceConfig(file, after);
      return;
    }
  } finally {
    lock.release();
  }
  throw new ConfigError(`${path} keeps changing while it is being edited: try again.`);
}

/** Of the file itself: beside what a link leads to, so that all ways to a file have one lock. */
export function nameLock(file: string): string {
  return join(dirname(file), `.${basename(file)}.lock`);
}

/** All at once, where they do not touch each other: a thousand keys may go, and each look at the whole file takes its time. */
export function applyEdits(text: string, edits: readonly Edit[]): string {
  if (edits.length > 1) {
    const document = parseYaml(text);
    const wanted = edits.reduce((tree, edit) => changeAt(tree, edit.path, edit), readTree(document));
    const spliced = spliceAll(text, document, edits);
    if (spliced !== null && saysSame(spliced, wanted)) return spliced;
  }
  return edits.reduce(applyEdit, text);
}

/** The text with the change made; what is so already, or gone already, changes nothing. Where the file's style is
 *  unusual the document is written anew: then its comments stay, its formatting may not. */
export function applyEdit(text: string, edit: Edit): string {
  const added = appendKeys(text, edit);
  if (added !== null) return added;
  const document = parseYaml(text);
  const tree = readTree(document);
  const wanted = changeAt(tree, edit.path, edit);
  if (Bun.deepEquals(tree, wanted, true)) return text;
  const spliced = spliceAll(text, document, [edit]);
  if (spliced !== null && saysSame(spliced, wanted)) return spliced;
  const rewritten = rewrite(document, edit);
  if (rewritten !== null && saysSame(rewritten, wanted)) return rewritten;
  throw new ConfigError(
    `The file's YAML is too unusual to be edited by the program: please change ${String(edit.path[0])} by hand.`,
  );
}

/** Without parsing every key of the file; null where it has few, or the edit is another one. */
function appendKeys(text: string, edit: Edit): string | null {
  if (edit.kind !== "append" || edit.path.length !== 1 || edit.path[0] !== "keys") return null;
  const plain = extractPlainKeys(text);
  if (plain === null) return null;
  const document = parseYaml(plain.rest);
  if (!hasKeysAt(document, plain.firstLeft)) return null;
  const wanted = changeAt(parseSource(text, plain).tree, edit.path, edit);
  const { rest, resume } = plain;
  const splicedRest = spliceAll(rest, document, [edit]);
  if (splicedRest?.startsWith(rest.slice(0, resume.rest)) !== true) return null;
  const spliced = text.slice(0, resume.text) + splicedRest.slice(resume.rest);
  return saysSame(spliced, wanted) ? spliced : null;
}

/** Null where a style is beyond findSplice, or one edit touches what another does. */
function spliceAll(text: string, document: Document.Parsed, edits: readonly Edit[]): string | null {
  const splices = edits.map((edit) => findSplice(text, document, edit)).filter((splice) => splice !== null);
  if (splices.length < edits.length) return null;
  const pieces: string[] = [];
  let rest = text.length;
  // From the end; of two at one place the later edit comes first, and so stands behind.
  for (const { start, end, text: own } of splices.toReversed().sort((a, b) => b.start - a.start)) {
    if (end > rest) return null;
    pieces.push(text.slice(end, rest), own);
    rest = start;
  }
  return text.slice(0, rest) + pieces.toReversed().join("");
}

/** Null where an alias would refer to what is taken away. */
function rewrite(document: Document.Parsed, edit: Edit): string | null {
  try {
    editDocument(document, edit);
    return document.toString({ lineWidth: 0 });
  } catch {
    return null;
  }
}

function editDocument(document: Document.Parsed, edit: Edit): void {
  if (edit.kind === "remove") document.deleteIn(edit.path);
  else if (edit.kind === "set") document.setIn(edit.path, document.createNode(edit.value));
  else if (isSeq(document.getIn(edit.path))) {
    for (const value of edit.values) document.addIn(edit.path, document.createNode(value));
  } else document.setIn(edit.path, document.createNode(edit.values));
}

function saysSame(text: string, wanted: unknown): boolean {
  const { tree, problems } = parseSource(text);
  return problems.length === 0 && Bun.deepEquals(dropEmpty(tree), dropEmpty(wanted), true);
}

/** A section without entries is the same whether it stands as `keys:` or as `keys: []`. */
function dropEmpty(tree: unknown): unknown {
  if (!isObject(tree)) return tree;
  const isEmpty = (value: unknown) => value === null || (Array.isArray(value) && value.length === 0);
  return Object.fromEntries(Object.entries(tree).filter(([, value]) => !isEmpty(value)));
}

function changeAt(node: unknown, path: Path, edit: Edit): unknown {
  const [step, ...rest] = path;
  if (step === undefined) {
    if (edit.kind !== "append") return edit.kind === "set" ? edit.value : undefined;
    return [...(Array.isArray(node) ? node : []), ...edit.values];
  }
  const isRemoval = rest.length === 0 && edit.kind === "remove";
  if (Array.isArray(node)) {
    const index = Number(step);
    return isRemoval ? node.toSpliced(index, 1) : node.with(index, changeAt(node[index], rest, edit));
  }
  const map = isObject(node) ? node : {};
  const name = String(step);
  if (!isRemoval) return { ...map, [name]: changeAt(map[name], rest, edit) };
  return Object.fromEntries(Object.entries(map).filter(([other]) => other !== name));
}

async function waitForLock(path: string, owner: Owner): Promise<FileLock> {
  const deadline = performance.now() + LOCK_WAIT_MS;
  for (;;) {
    try {
      return takeLock(path, owner);
    } catch (error) {
      const why = describe(error);
      if (!isBusy(error)) throw new Error(`The lock ${path} cannot be taken: ${why}.`, { cause: error });
      if (performance.now() > deadline) throw new Error(`${why}: gave up waiting.`, { cause: error });
    }
    await Bun.sleep(5 + Math.random() * 30);
  }
}

function isBusy(error: unknown): boolean {
  return error instanceof LockHeld || /^SQLITE_(BUSY|LOCKED)/.test(codeOf(error));
}

function describe(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** Hard links stay as they are: the file gets its name anew. */
function requireEditable(file: string): void {
  try {
    requireOwn(file, true);
  } catch (error) {
    throw new Error(`${describe(error)}. It stays as it was.`, { cause: error });
  }
}

/** After a crash at any instant the old file or the new one is there, whole. */
function replaceConfig(file: string, text: string): void {
  try {
    requireOwn(file, true);
    const before = statSync(file);
    replaceFile(file, text, { mode: before.mode & 0o777, owner: before, durable: true });
  } catch (error) {
    throw new Error(`${file} cannot be written, and stays as it was: ${describe(error)}.`, { cause: error });
  }
  syncFolder(dirname(file));
}

function syncFolder(folder: string): void {
  if (process.platform === "win32") return;
  const handle = openSync(folder, "r");
  fsyncSync(handle);
  closeSync(handle);
}
