// Notes on the parts of sessions' prompts: kinds, names of tools, lengths and keyed
// hashes, but no text. Each session has a file in a folder next to the ledger.

import { existsSync, readdirSync, statSync } from "node:fs";
import { join } from "node:path";

import { openKeyFile, readOwn, removeOwn } from "../../lib/files/own-file.ts";
import { getField, getList, getText, parseJson } from "../../lib/json/json.ts";

export interface NotedPart {
  readonly kind: string;
  /** The tool's name, also for a call or result. */
  readonly name: string;
  /** In characters. */
  readonly size: number;
  /** A part has the same mark in all prompts of this folder. */
  readonly mark: string;
}

export type NotedTurn = ReturnType<typeof readTurns>[number];

export const MAX_FOLDER_BYTES = 64 * 1024 * 1024;
/** A session with a longer file gets no more notes. */
export const MAX_FILE_BYTES = 8 * 1024 * 1024;

export function nameFolder(ledgerPath: string): string {
  return `${ledgerPath}.context`;
}

/** Hashes with the folder's random key. It is made with the first notes. */
export function openKey(folder: string): Bun.CryptoHasher {
  return new Bun.CryptoHasher("sha256", openKeyFile(join(folder, "key")));
}

const MARK_LENGTH = 16;

/** Without the key, nobody can test a guess against a mark. */
export function markOf(key: Bun.CryptoHasher, hash: number): string {
  return key.copy().update(String(hash)).digest("hex").slice(0, MARK_LENGTH);
}

/** Uses a hash, because clients choose the names of sessions. */
export function nameFile(folder: string, session: string): string {
  return join(folder, `${new Bun.CryptoHasher("sha256").update(session).digest("hex").slice(0, 32)}.jsonl`);
}

/** Each turn has its prompt's `parts` in order, and in `called` the tools that its answer calls. */
export function readTurns(folder: string, session: string) {
  if (!existsSync(folder)) return [];
  const lists = new Map<string, NotedPart[]>();
  return (readOwn(nameFile(folder, session)) ?? "").split("\n").flatMap((text) => {
    const line = parseJson(text);
    // Each gateway process counts its parts from 0.
    const by = getText(getField(line, "by"));
    const parts = getField(line, "session") === undefined ? (lists.get(by) ?? []) : [];
    lists.set(by, parts);
    for (const part of getList(getField(line, "parts"))) {
      const [kind, name, size, mark] = getList(part);
      const length = Number.isSafeInteger(size) ? Math.max(0, Number(size)) : 0;
      parts.push({ kind: String(kind), name: String(name), size: length, mark: String(mark) });
    }
    const id = getField(line, "id");
    if (typeof id !== "string") return [];
    const sent = getList(getField(line, "sent")).flatMap((range) => {
      const [from, to] = getList(range).map(Number);
      return parts.slice(from ?? 0, to ?? 0);
    });
    const called = getList(getField(line, "called")).map(String);
    return [{ id, agent: getText(getField(line, "agent")), parts: sent, called }];
  });
}

export function shrinkFolder(folder: string, most = MAX_FOLDER_BYTES): number {
  const names = readdirSync(folder).filter((name) => name.endsWith(".jsonl"));
  const files = names.map((name) => {
    const { size, mtimeMs } = statSync(join(folder, name));
    return { path: join(folder, name), size, mtimeMs };
  });
  let total = files.reduce((sum, { size }) => sum + size, 0);
  for (const { path, size } of files.toSorted((a, b) => a.mtimeMs - b.mtimeMs)) {
    if (total <= most) break;
    removeOwn(path);
    total -= size;
  }
  return total;
}
