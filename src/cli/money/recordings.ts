// `gateway recordings list|show|remove`.

import { resolve } from "node:path";
import { RECORDING_NAME } from "../../config/yaml/scalars.ts";
import { getErrorMessage } from "../../lib/errors.ts";
import { getField, getText } from "../../lib/json/json.ts";
import {
  listRecordings,
  nameRecordings,
  openRecording,
  type Recording,
  type RecordingFacts,
  removeRecording,
} from "../../recording/store.ts";
import type { RecordedExchange } from "../../recording/exchange.ts";
import { type LedgerFlags, locateLedger } from "./ledger-place.ts";
import { number, printTable } from "../terminal/table.ts";
import { confirmRemoval, fail, print, printJson, printNote, refuseUsage } from "../terminal/terminal.ts";
import {
  formatAgo,
  formatAmount,
  formatBytes,
  formatCount,
  formatLocalSecond,
  formatMs,
} from "../terminal/text.ts";

export interface RecordingFlags extends LedgerFlags {
  readonly json?: true;
}

/** The folder of a recording: the path of one, or the place of a name next to the ledger. */
function locateRecording(name: string, flags: LedgerFlags): string {
  if (/[/\\]/.test(name)) return resolve(name);
  if (!RECORDING_NAME.test(name))
    refuseUsage(`"${name}" is not the name of a recording (letters, digits, - and _), and no path.`);
  return `${nameRecordings(locateLedger(flags))}/${name}`;
}

export function findRecording(name: string, flags: LedgerFlags): Recording {
  const folder = locateRecording(name, flags);
  const found = openRecording(folder) ?? fail(`There is no recording at ${folder}.`);
  if (found.damaged > 0)
    printNote(`${formatCount(found.damaged, "line")} of ${folder} cannot be read: an exchange was cut off.`);
  return found;
}

interface Listed extends RecordingFacts {
  readonly exchanges: number;
}

export function showRecordings(flags: RecordingFlags): void {
  const root = nameRecordings(locateLedger(flags));
  const all = listRecordings(root).flatMap((each): Listed[] => {
    try {
      return [{ ...each, exchanges: openRecording(`${root}/${each.name}`)?.exchanges.length ?? 0 }];
    } catch (error) {
      printNote(getErrorMessage(error));
      return [];
    }
  });
  if (flags.json === true) {
    printJson(
      all.map(({ name, exchanges, bytes, usedAt }) => {
        const folder = `${root}/${name}`;
        return { name, folder, exchanges, bytes, last_used: new Date(usedAt).toISOString() };
      }),
    );
    return;
  }
  if (all.length === 0)
    return printNote("There are no recordings. `gateway run --record NAME TOOL` makes one.");
  printTable(all, [
    { title: "RECORDING", name: true, read: ({ name }) => name },
    number("EXCHANGES", ({ exchanges }) => exchanges.toLocaleString("en-US")),
    number("SIZE", ({ bytes }) => formatBytes(bytes)),
    { title: "LAST USED", read: ({ usedAt }) => formatAgo(new Date(usedAt), new Date()) },
  ]);
  printNote(
    "Recordings hold prompts and answers, with whatever the user or a tool put into them, such as a .env file that an agent read. " +
      "Only keys, credentials and logins of the gateway are removed.",
  );
}

export function showRecording(name: string, flags: RecordingFlags): void {
  const { exchanges } = findRecording(name, flags);
  if (flags.json === true) return printJson(exchanges);
  const places = new Map(exchanges.map((exchange, index) => [exchange, index + 1]));
  printTable<RecordedExchange>(exchanges, [
    number("#", (exchange) => String(places.get(exchange))),
    { title: "TIME", read: ({ time }) => formatLocalSecond(new Date(time)) },
    {
      title: "REQUEST",
      name: true,
      read: ({ request, transport }) =>
        `${transport === undefined ? request.method : "WS"} ${request.target}`,
    },
    { title: "MODEL", spare: 1, read: ({ line }) => getText(getField(line, "model")) },
    number("STATUS", ({ response }) => String(response.status)),
    number("CHUNKS", ({ response }) => response.chunks.length.toLocaleString("en-US"), 2),
    number("TIME", (exchange) => formatMs(exchange.duration_ms), 3),
    number("COST $", ({ line }) => formatAmount(getText(getField(line, "charge_usd")) || "0")),
  ]);
}

export async function dropRecordings(
  names: readonly string[],
  flags: LedgerFlags & { readonly yes?: true },
): Promise<void> {
  const root = nameRecordings(locateLedger(flags));
  const known = new Set(listRecordings(root).map(({ name }) => name));
  for (const name of names) if (!known.has(name)) fail(`There is no recording "${name}" in ${root}.`);
  await confirmRemoval(names.map((name) => `the recording "${name}"`).join(", "), flags);
  for (const name of names) {
    removeRecording(root, name);
    print(`Removed the recording "${name}".`);
  }
}
