// Unknown paths may go upstream unchanged,
// unless a server could take one for a billed path.

import type { Platform } from "../config/schema.ts";
import type { Target } from "./dialect.ts";
import { KEY_SOURCES } from "../config/key-fields.ts";
import { dialectOf } from "./platforms.ts";

export interface OtherPath {
  readonly path: string;
  readonly relayed: boolean;
}

/** Paths that all servers read alike. */
const PLAIN = /^\/v1(?:beta)?(?:\/[\w@~-][\w@~.:=+,-]*)+$/;

/** Null if the path is never forwarded. `isListed` says whether it has an endpoint. */
export function readOther(
  path: string,
  relayPath: string,
  isListed: (path: string) => boolean,
): OtherPath | null {
  const relayed = path.startsWith(`${relayPath}/`);
  const own = relayed ? path.slice(relayPath.length) : path;
  if (!PLAIN.test(own) || own.length > MAX_LENGTH) return null;
  return isListed(path.toLowerCase()) ? null : { path: own, relayed };
}

const MAX_LENGTH = 512;

/** Paths below these names count, too. */
export function isForwarded({ path }: OtherPath, names: readonly string[]): boolean {
  return names.some((name) => path === name || path.startsWith(`${name}/`));
}

/** Null if the platform does not have the path's prefix or API version. */
export function describeOther({ path, relayed }: OtherPath, platform: Platform): Target | null {
  const isBeta = path.startsWith("/v1beta/");
  if (relayed !== (platform === "relay")) return null;
  if (isBeta && platform !== "content" && platform !== "relay") return null;
  const dialect = platform === "relay" ? dialectOf(isBeta ? "content" : "messages") : dialectOf(platform);
  const endpoint = {
    label: "other",
    purpose: "other",
    platforms: [platform],
    dialect,
    keySources: KEY_SOURCES,
  } as const;
  return { endpoint, path, model: null, stream: false };
}
