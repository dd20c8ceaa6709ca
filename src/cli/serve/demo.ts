// `serve --demo`: a generated config with a simulated upstream for every platform.

import { mkdtempSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Catalog } from "../../config/catalog.ts";
import { type ChannelPlatform, CHAT, groupPlatform, PLATFORMS } from "../../config/schema.ts";
import { checkConfigText } from "../../config/file/load.ts";
import { forEachPlatform, PLATFORM_ROWS, readPathPrefix } from "../../dialects/platforms.ts";
import { startUpstream } from "../../demo/upstream.ts";
import { newSecret } from "../../lib/secret.ts";
import { removeFolder } from "../../lib/files/own-file.ts";

export interface Demo {
  readonly catalog: Catalog;
  readonly secrets: Readonly<Record<ChannelPlatform, string>>;
  /** Returns the path of its ledger, or null if that was empty and has been removed. */
  stop(): string | null;
}

/** Between two events of a simulated stream: short, but visible. */
const EVENT_GAP_MS = 40;

/** A group for each platform, and one with a channel that speaks Chat Completions. */
const GROUPS = [...PLATFORMS, CHAT] as const;
const CHAT_CALL = {
  path: "/v1/chat/completions",
  body: { model: "qwen3-coder", stream: true, messages: [{ role: "user", content: "Hello" }] },
};

export function startDemo(): Demo {
  const upstreams = GROUPS.map((platform) => ({
    platform,
    ...startUpstream({ platform, paceMs: EVENT_GAP_MS }),
  }));
  const secrets = { ...forEachPlatform(() => newSecret()), chat: newSecret() };
  const folder = mkdtempSync(join(tmpdir(), "gateway-demo-"));
  const config = {
    channels: Object.fromEntries(
      upstreams.map(({ platform, port }) => [
        `demo-${platform}`,
        { platform, base_url: `http://127.0.0.1:${port}`, credential: "demo-credential" },
      ]),
    ),
    groups: Object.fromEntries(
      GROUPS.map((group) => [
        group,
        {
          platform: groupPlatform(group),
          multiplier: "1",
          channels: [`demo-${group}`],
          description: "simulated",
        },
      ]),
    ),
    keys: GROUPS.map((group) => ({ name: `demo-${group}`, group, secret: secrets[group] })),
  };
  const { catalog } = checkConfigText(JSON.stringify(config), join(folder, "gateway.yaml"), {});
  const { path } = catalog.ledger;
  const stop = (): string | null => {
    for (const upstream of upstreams) upstream.stop();
    if ((statSync(path, { throwIfNoEntry: false })?.size ?? 0) > 0) return path;
    removeFolder(folder);
    return null;
  };
  return { catalog, secrets, stop };
}

/** One line to paste for each endpoint. */
export function writeCurlLines(base: string, secrets: Demo["secrets"], relayPrefix: string): string[] {
  const posts = GROUPS.flatMap((group) => {
    const platform = groupPlatform(group);
    const { keyHeader, posts: calls } = PLATFORM_ROWS[platform].demo;
    const start = base + readPathPrefix(platform, relayPrefix);
    const key = keyHeader.replace("#", secrets[group]);
    return (group === CHAT ? [CHAT_CALL] : calls).map(
      ({ path, body }) =>
        `curl -N '${start}${path}' -H '${key}' -H 'content-type: application/json' -d '${JSON.stringify(body)}'`,
    );
  });
  // Platforms that share the path of a list answer it alike: one line for each path.
  const lists = new Map<string, string>();
  for (const platform of PLATFORMS) {
    const { demo, listPath } = PLATFORM_ROWS[platform];
    const url = base + readPathPrefix(platform, relayPrefix) + listPath;
    const key = demo.listKeyHeader.replace("#", secrets[platform]);
    if (!lists.has(url)) lists.set(url, `curl '${url}' -H '${key}'`);
  }
  return [...posts, ...lists.values()];
}
