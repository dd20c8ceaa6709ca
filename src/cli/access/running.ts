// The gateways of this user that run now, whatever config they have.

import { readdirSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import { isPrivate, locateControl } from "../../gateway/control/socket.ts";
import { tryGatewayOn } from "./control.ts";

const stateSchema = z.object({
  address: z.object({ host: z.string(), port: z.number() }),
  ledger: z.object({ path: z.string() }),
});

export type RunningGateway = z.infer<typeof stateSchema>;

/** One that does not answer is left out. */
export async function listGateways(): Promise<RunningGateway[]> {
  const states = await Promise.all(listSockets().map(readState));
  return states.filter((state) => state !== null);
}

/** The folders are the same for every ledger. */
function listSockets(): string[] {
  const folders = locateControl("").map(({ folder }) => folder);
  return folders
    .filter(isPrivate)
    .flatMap((folder) => readdirSync(folder).map((name) => join(folder, name)))
    .filter((path) => path.endsWith(".sock"));
}

async function readState(socket: string): Promise<RunningGateway | null> {
  try {
    return stateSchema.safeParse(await tryGatewayOn(socket, "GET", "/state")).data ?? null;
  } catch {
    return null;
  }
}
