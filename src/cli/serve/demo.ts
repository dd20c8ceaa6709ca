// `serve --demo`: a config with a simulated upstream for every platform.

import { mkdtempSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { checkConfigText } from "../../config/file/load.ts";
import { CHANNEL_WORDS, type ChannelPlatform, groupPlatform, PLATFORMS } from "../../config/schema.ts";
import { CALLS } from "../../demo/platforms.ts";
import { startUpstream } from "../../demo/upstream.ts";
import { PLATFORM_ROWS, readPathPrefix } from "../../dialects/platforms.ts";
import { removeFolder } from "../../lib/files/own-file.ts";
import { newSecret } from "../../lib/secret.ts";

export type Demo = ReturnType<typeof startDemo>;

const EVENT_GAP_MS = 40;

export function startDemo() {
  const secrets = new Map(CHANNEL_WORDS.map((platform) => [platform, newSecret()]));
  const folder = mkdtempSync(join(tmpdir(), "gateway-demo-"));
  const parts = CHANNEL_WORDS.map((platform) => {
    const upstream = startUpstream(platform, EVENT_GAP_MS);
    const [name, base_url] = [`demo-${platform}`, `http://127.0.0.1:${upstream.port}`];
    const group = {
      platform: groupPlatform(platform),
      channels: [name],
      description: "simulated",
    };
    const key = { name, group: platform, secret: secrets.get(platform) };
    return {
      platform,
      upstream,
      name,
      key,
      group,
      channel: { platform, base_url, credential: "demo" },
    };
  });
  const config = {
    channels: Object.fromEntries(parts.map(({ name, channel }) => [name, channel])),
    groups: Object.fromEntries(parts.map(({ platform, group }) => [platform, group])),
    keys: parts.map(({ key }) => key),
  };
  const { catalog } = checkConfigText(JSON.stringify(config), join(folder, "gateway.yaml"), {});
  const { path } = catalog.ledger;
  /** Returns the ledger's path, or null if it was empty and has been removed. */
  const stop = (): string | null => {
    for (const { upstream } of parts) upstream.stop();
    if ((statSync(path, { throwIfNoEntry: false })?.size ?? 0) > 0) return path;
    removeFolder(folder);
    return null;
  };
  return { catalog, secrets, stop };
}

export function writeCurlLines(base: string, secrets: Demo["secrets"], relayPrefix: string): string[] {
  const writeKey = (group: ChannelPlatform): string =>
    `-H 'authorization: Bearer ${secrets.get(group) ?? ""}'`;
  const posts = CHANNEL_WORDS.flatMap((group) => {
    const platform = groupPlatform(group);
    const start = base + readPathPrefix(platform, relayPrefix);
    const fields = `${writeKey(group)} -H 'content-type: application/json'`;
    return CALLS[group].map(({ path, body }) => {
      return `curl -N '${start}${path}' ${fields} -d '${JSON.stringify(body)}'`;
    });
  });
  const lists = PLATFORMS.map((platform): [string, string] => {
    const url = base + readPathPrefix(platform, relayPrefix) + PLATFORM_ROWS[platform].dialect.listPath;
    return [url, `curl '${url}' ${writeKey(platform)}`];
  });
  return [...posts, ...new Map(lists).values()];
}
