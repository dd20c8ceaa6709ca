// `gateway recordings list|show|remove`.

import { resolve } from "node:path";
import { RECORDING_NAME } from "../../config/yaml/scalars.ts";
import { messageOf } from "../../lib/errors.ts";
import type { GatewayState } from "../../gateway/api/state.ts";
import { getField, getText } from "../../lib/json/json.ts";
import {
  listRecordings,
  nameRecordings,
  openRecording,
  type Recording,
  removeRecording,
} from "../../recording/store.ts";
import { readDocument } from "../access/control.ts";
import { type LedgerFlags, locateLedger } from "../access/ledger-place.ts";
import { confirmRemoval, fail, print, printNote, refuseUsage } from "../terminal/terminal.ts";
import { formatCount } from "../terminal/text.ts";

function locateRecording(name: string, flags: LedgerFlags): string {
  if (/[/\\]/.test(name)) return resolve(name);
  if (!RECORDING_NAME.test(name))
    refuseUsage(`"${name}" is no path, and no name of a recording (letters, digits, - and _).`);
  return `${nameRecordings(locateLedger(flags))}/${name}`;
}

export function findRecording(name: string, flags: LedgerFlags): Recording {
  const folder = locateRecording(name, flags);
  const none = `There is no recording at ${folder}. \`gateway recordings list\` shows all.`;
  const found = openRecording(folder) ?? fail(none);
  if (found.damaged > 0) printNote(`${formatCount(found.damaged, "file")} of ${folder} cannot be read.`);
  return found;
}

export function showRecordings(flags: LedgerFlags) {
  const root = nameRecordings(locateLedger(flags));
  const rows = listRecordings(root).flatMap(({ name, bytes, usedAt }) => {
    const folder = `${root}/${name}`;
    try {
      const exchanges = openRecording(folder)?.exchanges.length ?? 0;
      return [
        {
          name,
          folder,
          exchanges,
          bytes,
          last_used: new Date(usedAt).toISOString(),
        },
      ];
    } catch (error) {
      printNote(messageOf(error));
      return [];
    }
  });
  const empty = "There are no recordings. `gateway run --record NAME TOOL` makes one.";
  const note = "Recordings hold complete prompts and answers, but no keys, credentials or logins.";
  return { rows, empty, notes: [note] };
}

export function showRecording(name: string, flags: LedgerFlags) {
  const { exchanges } = findRecording(name, flags);
  const rows = exchanges.map((exchange, index) => {
    const { time, request, transport, line, response, duration_ms } = exchange;
    return {
      place: index + 1,
      time,
      request: `${transport === undefined ? request.method : "WS"} ${request.target}`,
      model: getText(getField(line, "model")),
      status: response.status,
      chunks: response.chunks.length,
      duration_ms,
      charge_usd: line === null ? "0" : line.charge_usd,
    };
  });
  return { rows, document: exchanges };
}

export async function dropRecordings(
  names: readonly string[],
  flags: LedgerFlags & { readonly yes?: true },
): Promise<void> {
  const ledgerPath = locateLedger(flags);
  const root = nameRecordings(ledgerPath);
  const known = new Set(listRecordings(root).map(({ name }) => name));
  for (const name of names)
    if (!known.has(name))
      fail(`There is no recording "${name}" in ${root}. \`gateway recordings list\` shows all.`);
  const state = await readDocument<GatewayState>({ ledgerPath }, "GET", "reports/state");
  for (const { name, key } of state?.recordings ?? []) {
    const end =
      key === null ? "Wait for its run and its last answer" : `Take \`record\` off the key "${key}" first`;
    if (names.includes(name)) fail(`"${name}" is being recorded: it would come back. ${end}.`);
  }
  await confirmRemoval(names.map((name) => `the recording "${name}"`).join(", "), flags);
  for (const name of names) {
    removeRecording(root, name);
    print(`Removed the recording "${name}".`);
  }
}
