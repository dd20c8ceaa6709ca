// The address, proxy and deadlines of a channel's upstream, computed once for each channel of a catalog.

import type { Channel } from "../../config/catalog.ts";
import { CHANNEL_ROWS } from "../../dialects/platforms.ts";
import { type Deadlines, type Origin, originOf } from "../../lib/http/upstream.ts";

export interface UpstreamAddress {
  readonly origin: Origin;
  /** The path of the channel's base URL, without a trailing slash: "" or "/relay". */
  readonly basePath: string;
  /** Infinity where the config says 0s (no limit). */
  readonly deadlines: Deadlines;
}

/** The path of a request, at the channel's address. Servers of Chat Completions have versions of their own: `/v4`. */
export function joinPath(channel: Channel, path: string): string {
  const { basePath } = addressOf(channel);
  const mayHave = CHANNEL_ROWS[channel.platform].ownVersions === true;
  const isVersioned = mayHave && /\/v\d+\w*(?:\/openai)?$/.test(basePath);
  return basePath + (isVersioned ? path.replace(/^\/v1/, "") : path);
}

const known = new WeakMap<Channel, UpstreamAddress>();

export function addressOf(channel: Channel): UpstreamAddress {
  const found = known.get(channel);
  if (found !== undefined) return found;
  const upstream = resolveUpstream(channel);
  known.set(channel, upstream);
  return upstream;
}

function resolveUpstream({ baseUrl, proxy, ca, timeouts }: Channel): UpstreamAddress {
  const origin: Origin = {
    ...originOf(baseUrl),
    ...(proxy === null ? {} : { proxy }),
    ...(ca === null ? {} : { ca }),
  };
  const { connectMs, firstByteMs, idleMs } = timeouts;
  const deadlines = {
    connectMs: connectMs || Infinity,
    firstByteMs: firstByteMs || Infinity,
    idleMs: idleMs || Infinity,
  };
  return { origin, basePath: baseUrl.pathname.replace(/\/+$/, ""), deadlines };
}
