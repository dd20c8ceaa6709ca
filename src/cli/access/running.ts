// The running gateways of this user, and their addresses.

import { readdirSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import { isPrivate, locateControl } from "../../gateway/api/socket.ts";
import { fail } from "../terminal/terminal.ts";
import { type ControlCall, tryGateway } from "./control.ts";

const stateSchema = z.object({
  version: z.string(),
  pid: z.number(),
  address: z.object({ host: z.string(), port: z.number() }),
  ledger: z.object({ path: z.string(), problem: z.string().nullable() }),
  config_problem: z.string().nullish(),
});

export type FoundGateway = z.infer<typeof stateSchema>;
export type Address = FoundGateway["address"];

export async function findRunning(ledgerPath: string, timeoutMs?: number): Promise<FoundGateway | null> {
  return readState({ ledgerPath, ...(timeoutMs !== undefined && { timeoutMs }) });
}

export async function listGateways(): Promise<FoundGateway[]> {
  const folders = locateControl("").map(({ folder }) => folder);
  const paths = folders.filter(isPrivate).flatMap((folder) => {
    return readdirSync(folder).map((name) => join(folder, name));
  });
  const sockets = paths.filter((path) => path.endsWith(".sock"));
  const states = await Promise.all(sockets.map((socket) => readState({ socket })));
  return states.filter((state) => state !== null);
}

async function readState(call: ControlCall): Promise<FoundGateway | null> {
  try {
    return stateSchema.safeParse(await tryGateway(call, "GET", "reports/state")).data ?? null;
  } catch {
    return null;
  }
}

export function formatBaseUrl({ host, port }: Address): string {
  if (port === 0) return fail("No gateway runs, and the config's port is 0 (any). Start it, or give --url.");
  const reached = host === "0.0.0.0" ? "127.0.0.1" : host === "::" ? "::1" : host;
  return `http://${reached.includes(":") && !reached.startsWith("[") ? `[${reached}]` : reached}:${port}`;
}
