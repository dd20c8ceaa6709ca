// Starts a gateway with one key for each group, and sends requests with these keys.

import { onTestFinished } from "bun:test";
import type { Any } from "../../bridges/calls.ts";
import { type InsideGateway, startGatewayHere } from "../../harness/gateway.ts";

export const channelOf = (platform: string, { url }: { readonly url: string }, more: Any = {}): Any => ({
  platform,
  base_url: url,
  credential: `credential-of-${platform}`,
  free: true,
  ...more,
});

/** Starts a gateway for one test. Each of the groups has a key of its name; `key` has settings for all keys. */
export function open(channels: Any, groups: Any, { key = {}, ...more }: Any = {}): InsideGateway {
  const keys = Object.keys(groups).map((name) => ({ name, group: name, secret: `sk-test-${name}`, ...key }));
  const gateway = startGatewayHere({ config: { channels, groups, keys, ...more } });
  onTestFinished(() => gateway.stop());
  return gateway;
}

/** Starts a gateway whose group `g` converts to the only channel, `far`. */
export const openFar = (platform: string, far: Any, more: Any = {}): InsideGateway =>
  open({ far }, { g: { platform, channels: ["far"], convert: true } }, more);

export function post(
  { url }: InsideGateway,
  key: string,
  path: string,
  body: Any,
  more: Record<string, string> = {},
): Promise<Response> {
  const headers = { authorization: `Bearer sk-test-${key}`, "content-type": "application/json", ...more };
  return fetch(url + path, { method: "POST", body: JSON.stringify(body), headers });
}
