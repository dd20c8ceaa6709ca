// What the envelopes of a channel are proved with: its credential. Where that is missing, or a word that anybody can guess
// (a server of one's own often takes any), it is a random key in a file next to the config.

import type { Channel } from "../../config/catalog.ts";
import { getErrorMessage } from "../../lib/errors.ts";
import { openKeyFile } from "../../lib/files/own-file.ts";
import { randomHex } from "../../lib/secret.ts";
import { listSecrets } from "./secrets.ts";
import { isLoopback } from "../../config/proxy.ts";

export type Sealing = (channel: Pick<Channel, "credential" | "baseUrl">) => string;

/** `configPath`: null if there is no file. */
export function createSealing(configPath: string | null, warn: (text: string) => void): Sealing {
  let key: string | null = null;
  return ({ credential, baseUrl }) => {
    if (listSecrets({ credential, headers: [] }).length > 0 && !isLoopback(baseUrl.hostname))
      return credential;
    key ??= openKey(configPath, warn);
    return `${key} ${baseUrl.host} ${credential}`;
  };
}

function openKey(configPath: string | null, warn: (text: string) => void): string {
  if (configPath === null) return randomHex(32);
  const path = `${configPath}.envelopes`;
  try {
    return openKeyFile(path).toString("hex");
  } catch (error) {
    warn(
      `models forget their thoughts at a restart, because ${path} cannot be used: ${getErrorMessage(error)}`,
    );
    return randomHex(32);
  }
}
