// What a request costs the gateway, layer by layer: how low a proxy on this runtime could get, and what each
// task adds. The layers are targets like the others; the last one is still not a whole gateway.

import { join } from "node:path";
import { type Cores, type Folder, makeFolder, start } from "../machine.ts";
import { LAYERS } from "./layer-list.ts";
import { hold, PLAIN, type Recipe, SECRET } from "./targets.ts";

/** Layers that have a program of their own. */
const PROGRAMS: Readonly<Record<string, string>> = { copied: "copier.ts", bun: "bun-server.ts" };

/** Its program and the program's words. */
export function describeLayer(name: string, upstreamPort: number, folder: Folder): string[] {
  const alone = PROGRAMS[name];
  const port = String(upstreamPort);
  const words = alone === undefined ? [name, port, folder.path, SECRET] : [port];
  return [join(import.meta.dir, alone ?? "floor.ts"), ...words];
}

export function planLayers(cores: Cores | null): Recipe[] {
  return LAYERS.map(({ name, tells }) => ({
    name,
    async start(upstreamPort) {
      const folder = makeFolder();
      const command = [process.execPath, ...describeLayer(name, upstreamPort, folder)];
      const child = start(command, { core: cores?.proxy ?? null });
      const ownPort = Number(await child.readLine());
      if (!(ownPort > 0)) throw new Error(`${name} did not start: ${child.complaints()}`);
      const fields = { "x-api-key": SECRET };
      return { ...PLAIN, ...hold(name, child, folder), port: ownPort, fields, guest: `${name}: ${tells}` };
    },
  }));
}
