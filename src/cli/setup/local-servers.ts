// Finds model servers on this machine: those whose port accepts a connection.

import { connect } from "node:net";
import { type Preset, PRESETS } from "./presets.ts";

const PROBE_WAIT_MS = 300;

export async function findLocalServers(presets: readonly Preset[] = PRESETS): Promise<Preset[]> {
  const local = presets.filter((preset) => preset.local !== undefined);
  const answers = await Promise.all(local.map(({ baseUrl }) => acceptsConnections(new URL(baseUrl))));
  return local.filter((_, index) => answers[index] === true);
}

function acceptsConnections({ hostname, port }: URL): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>();
  const socket = connect({ host: hostname, port: Number(port), timeout: PROBE_WAIT_MS });
  const finish = (answer: boolean): void => {
    socket.destroy();
    resolve(answer);
  };
  socket.once("connect", () => finish(true));
  socket.once("timeout", () => finish(false));
  socket.once("error", () => finish(false));
  return promise;
}
