// A price book that is newer than the program: it lies next to the config, as `gateway prices update` wrote it. Its
// first line has its day, where it is from, and the SHA-256 of all that follows, so that a damaged one is not used.

import { basename, dirname, extname, join } from "node:path";
import { getErrorCode } from "../../lib/errors.ts";
import { getField, parseJson } from "../../lib/json/json.ts";
import { ForeignFile, readOwn, replaceFile, requireOwn } from "../../lib/files/own-file.ts";
import { sha256Hex } from "../../lib/secret.ts";
import { loadBuiltInBook, openBook, type PriceBook } from "./book.ts";

/** `gateway.yaml` → `gateway.prices.jsonl` in the same folder. */
export function placeOfBook(configPath: string): string {
  return join(dirname(configPath), `${basename(configPath, extname(configPath))}.prices.jsonl`);
}

/** The newer of the two: a program that was made after the file's day knows better. Null: there is no config. */
export function loadBookBeside(configPath: string | null): PriceBook {
  const builtIn = loadBuiltInBook();
  const text = configPath === null ? null : readText(placeOfBook(configPath));
  if (configPath === null || text === null) return builtIn;
  const stored = openStored(text, placeOfBook(configPath));
  return stored.date < builtIn.date ? builtIn : stored;
}

function readText(path: string): string | null {
  try {
    // Somebody else's file, or a link, is refused, not passed over: prices would change unnoticed.
    return requireOwn(path) === null ? null : readOwn(path);
  } catch (error) {
    const why = error instanceof ForeignFile ? error.message : getErrorCode(error) || String(error);
    throw new Error(`The price book ${path} cannot be read: ${why}.`, { cause: error });
  }
}

function openStored(text: string, path: string): PriceBook {
  const end = text.indexOf("\n");
  const head = parseJson(text.slice(0, end));
  if (end < 0 || getField(head, "sha256") !== sha256Hex(text.slice(end + 1)))
    throw new Error(
      `The price book ${path} is damaged: its content has another hash than its first line says. \`gateway prices update\` writes it again. Or remove the file: then the built-in book counts.`,
    );
  return openBook(text);
}

/** Adds the hash of a book that makeBook made. */
export function sealBook(text: string): string {
  const end = text.indexOf("\n");
  const rest = text.slice(end + 1);
  const head = text.slice(0, end).replace(/\}$/, `,"sha256":"${sha256Hex(rest)}"}`);
  return `${head}\n${rest}`;
}

/** In one step: a reader gets the old one or the new one, never a mixture. */
export function writeBook(path: string, sealed: string): void {
  replaceFile(path, sealed, { mode: 0o600, durable: true });
}
