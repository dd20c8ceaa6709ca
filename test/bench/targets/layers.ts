// What a request costs the gateway, layer by layer: how low a proxy on this runtime could get, and what each
// task adds. The layers are targets like the others; the last one is still not a whole gateway.

import { join } from "node:path";
import { type Cores, makeFolder, start } from "../machine.ts";
import { hold, PLAIN, type Recipe, SECRET } from "./targets.ts";

/** Layers that have a program of their own. */
const PROGRAMS: Readonly<Record<string, string>> = { copied: "copier.ts", bun: "bun-server.ts" };

export const LAYERS = [
  { name: "copied", tells: "bytes copied between two sockets" },
  { name: "bun", tells: "requests and answers passed on by Bun.serve and fetch" },
  { name: "passed", tells: "requests and answers read and written by lib/http1" },
  { name: "asked", tells: "and the key checked, fields chosen, the model read" },
  { name: "charged", tells: "and usage metered and priced" },
  { name: "ledgered", tells: "and journal and ledger kept" },
] as const;

export function planLayers(cores: Cores | null): Recipe[] {
  return LAYERS.map(({ name, tells }) => ({
    name,
    async start(upstreamPort) {
      const folder = makeFolder();
      const alone = PROGRAMS[name];
      const program = join(import.meta.dir, alone ?? "floor.ts");
      const port = String(upstreamPort);
      const words = alone === undefined ? [name, port, folder.path] : [port];
      const child = start([process.execPath, program, ...words], { core: cores?.proxy ?? null });
      const ownPort = Number(await child.readLine());
      if (!(ownPort > 0)) throw new Error(`${name} did not start: ${child.complaints()}`);
      const fields = { "x-api-key": SECRET };
      return { ...PLAIN, ...hold(name, child, folder), port: ownPort, fields, guest: `${name}: ${tells}` };
    },
  }));
}
