// Folders with what agents sent and got. No other user can use them.

import { lstatSync, mkdirSync } from "node:fs";
import { codeOf } from "../errors.ts";
import { quoteWord } from "../text/shell-word.ts";
import { ForeignFile, isOurs } from "./own-file.ts";
import { PLATFORM } from "./platform.ts";

const OTHERS = 0o077;
export const OTHERS_WRITE = 0o022;

export function requireFolder(path: string, forbidden: number): boolean {
  const found = lstatSync(path, { throwIfNoEntry: false });
  if (found === undefined) return false;
  if (found.isSymbolicLink())
    throw new ForeignFile(`${path} is a link: remove it with rm ${quoteWord(path)}`);
  if (!found.isDirectory()) throw new ForeignFile(`${path} is not a folder: move it away`);
  if (!isOurs(found))
    throw new ForeignFile(`${path} belongs to user ${found.uid}, not to you: only its owner may use it`);
  if (PLATFORM.hasModes && (found.mode & forbidden) !== 0)
    throw new ForeignFile(
      `${path} can be used by others: chmod ${forbidden === OTHERS ? "700" : "go-w"} ${quoteWord(path)}`,
    );
  return true;
}

export function makeFolder(path: string): boolean {
  let isNew = true;
  try {
    mkdirSync(path, { mode: 0o700 });
  } catch (error) {
    if (codeOf(error) !== "EEXIST") throw error;
    isNew = false;
  }
  requireFolder(path, OTHERS);
  return isNew;
}
