// `gateway run --record NAME`: tells the gateway of this machine to record what the run sends, until it ends. Only the
// control socket can: a key alone must not make the gateway write files.

import { z } from "zod";
import { RECORDING_NAME } from "../../config/yaml/scalars.ts";
import { tryGateway } from "../access/control.ts";
import { listGateways } from "../access/running.ts";
import { formatCount } from "../terminal/text.ts";
import { fail, printNote, refuseUsage } from "../terminal/terminal.ts";

const reply = z.object({ folder: z.string(), requests: z.number() });

/** Returns what ends the recording. */
export async function recordRun(name: string, base: string, session: string): Promise<() => Promise<void>> {
  if (!RECORDING_NAME.test(name))
    return refuseUsage("--record: the name of a recording is letters, digits, - and _.");
  const port = Number(new URL(base).port);
  const found = (await listGateways()).find(({ address }) => address.port === port);
  if (found === undefined) return fail(`--record: no gateway of yours runs at ${base} on this machine.`);
  const ask = async (wanted: string | null) => {
    const call = { ledgerPath: found.ledger.path, body: { session, name: wanted } };
    return reply.parse(await tryGateway(call, "POST", "actions/record-run"));
  };
  const { folder } = await ask(name);
  printNote(`● recording: the prompts and answers of this run are written to ${folder}`, "yellow");
  return async () => {
    const { requests } = await ask(null);
    const advice = `The gateway knew no request of this run. Put \`record: ${name}\` on the tool's key instead.`;
    printNote(requests === 0 ? advice : `recorded: ${formatCount(requests, "request")} in ${folder}`);
  };
}
