// Shows what somebody else sees of a gateway: the files that it leaves, and its port from outside of this machine.

import { existsSync, lstatSync, readdirSync, readFileSync } from "node:fs";
import { networkInterfaces } from "node:os";
import { join } from "node:path";

/** Lists the files below a folder whose paths do not match `without`. */
export const listFiles = (folder: string, without = /^$/): string[] =>
  (existsSync(folder) ? readdirSync(folder, { recursive: true }) : [])
    .map((name) => join(folder, String(name)))
    .filter((path) => !without.test(path) && lstatSync(path).isFile());

/** Reads the contents of these files as one text. */
export const readFiles = (folder: string, without?: RegExp): string =>
  listFiles(folder, without)
    .map((path) => readFileSync(path, "latin1"))
    .join("\n");

/** An address of this machine beyond loopback; undefined: it has none. */
export const outside = Object.values(networkInterfaces())
  .flat()
  .find((each) => each !== undefined && !each.internal && each.family === "IPv4");

export const isReachable = (port: number): Promise<boolean> =>
  Bun.connect({ hostname: outside!.address, port, socket: { data() {} } }).then(
    (socket) => {
      socket.end();
      return true;
    },
    () => false,
  );
