// `gateway ledger accept`: the owner accepts what starts of the gateway found in the ledger. A running gateway writes it.

import { z } from "zod";
import { tryGateway } from "../../access/control.ts";
import { findLedger, type LedgerFlags } from "../ledger-place.ts";
import { escapeUnprintable } from "../../../lib/text/printable.ts";
import { print, printJson, printNote } from "../../terminal/terminal.ts";
import { formatCount } from "../../terminal/text.ts";
import { findRunning, openToWrite } from "./reprice.ts";

const reply = z.object({ accepted: z.array(z.string()) });

export async function acceptLedger(flags: LedgerFlags & { readonly json?: true }): Promise<void> {
  const path = findLedger(flags);
  const accepted = (await findRunning(path)) ? await acceptThrough(path) : await acceptAlone(path);
  if (flags.json === true) return printJson({ accepted });
  for (const mark of accepted) print(escapeUnprintable(mark));
  printNote(
    accepted.length === 0
      ? "Nothing to accept: no start has found anything that is not accepted."
      : `${formatCount(accepted.length, "finding")} accepted. Limits count the ledger as it is.`,
  );
}

async function acceptThrough(path: string): Promise<readonly string[]> {
  return reply.parse(await tryGateway({ ledgerPath: path }, "POST", "actions/accept-ledger")).accepted;
}

async function acceptAlone(path: string): Promise<readonly string[]> {
  const ledger = openToWrite(path);
  const accepted = ledger.acceptMarks().map(({ mark }) => mark);
  await ledger.close();
  return accepted;
}
