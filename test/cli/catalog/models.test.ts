// `gateway models`: what a key can call now, and nothing else.

import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { readFileSync, writeFileSync } from "node:fs";
import { startDemoUpstream } from "../../harness/upstreams/demo-upstream.ts";
import { makeTempFolder, type TempFolder } from "../../harness/temp.ts";
import { type Outcome, run } from "../driving.ts";

let folder: TempFolder;
let upstream: ReturnType<typeof startDemoUpstream>;
beforeEach(() => {
  folder = makeTempFolder();
  upstream = startDemoUpstream({ platform: "messages" });
  const channel = `{ platform: messages, base_url: "${upstream.url}", credential: x }`;
  const config = `channels: { a: ${channel} }
groups:
  open: { platform: messages, channels: [a] }
  gold: { platform: messages, channels: [a], exclusive: true }
plans: { gold: { groups: [gold], active: false } }
keys:
  - { name: laptop, group: open, secret: sk-laptop }
  - { name: bought, group: gold, secret: sk-bought }
  - { name: off, group: open, secret: sk-off, disabled: true }
  - { name: old, group: open, secret: sk-old, expires: 2020-01-01 }
`;
  writeFileSync(folder.join("gateway.yaml"), config, { mode: 0o600 });
});
afterEach(() => {
  upstream.stop();
  folder.remove();
});

const models = (...flags: string[]): Promise<Outcome> =>
  run({ folder: folder.path }, "models", "--json", ...flags);

describe("gateway models", () => {
  test("lists the models of a key, and only those of groups that can be used now", async () => {
    const groupsOf = async (...flags: string[]) =>
      new Set(JSON.parse((await models(...flags)).stdout).map(({ group }: { group: string }) => group));
    expect(await groupsOf()).toEqual(new Set(["open"]));
    expect(await groupsOf("--key-name", "laptop")).toEqual(new Set(["open"]));
    await run({ folder: folder.path }, "plans", "activate", "gold");
    expect(await groupsOf()).toEqual(new Set(["open", "gold"]));
    expect(await groupsOf("--key-name", "bought")).toEqual(new Set(["gold"]));
  });

  test("shows which channels get requests converted, and which pass Chat Completions as they are", async () => {
    const chat = startDemoUpstream({ platform: "chat" });
    writeFileSync(
      folder.join("gateway.yaml"),
      `channels:
  local: { platform: chat, base_url: "${chat.url}", credential: x }
  own: { platform: messages, base_url: "${chat.url}", credential: x, models: [mine] }
groups:
  plain: { platform: responses, channels: [local] }
  both: { platform: responses, channels: [local], convert: true }
  claude: { platform: messages, channels: [local], convert: true }
  mixed: { platform: messages, channels: [local, own], convert: true }
`,
    );
    const list: { group: string; converted: string[] }[] = JSON.parse((await models()).stdout);
    const converted = new Set(list.map(({ group, converted: names }) => `${group}: ${names.join()}`));
    expect(converted).toEqual(
      new Set(["plain: ", "both: local", "claude: local", "mixed: local", "mixed: "]),
    );
    const { stdout } = await run({ folder: folder.path }, "models");
    expect(stdout).toContain("local (Responses converted)");
    expect(stdout).toContain("local (converted)");
    chat.stop();
  });

  test("shows that a model on a free channel costs nothing, whatever the price book says of its name", async () => {
    const path = folder.join("gateway.yaml");
    writeFileSync(path, readFileSync(path, "utf8").replace("credential: x }", "credential: x, free: true }"));
    const list: { price: unknown; price_source: unknown }[] = JSON.parse((await models()).stdout);
    const prices = new Set(list.map(({ price, price_source }) => `${String(price)} ${String(price_source)}`));
    expect(prices).toEqual(new Set(["null free"]));
    const { stdout } = await run({ folder: folder.path }, "models");
    expect(stdout).toMatch(/^claude-haiku-4-5 .* free +free /m);
  });

  test.each([
    ["a key whose group's plan is not active", ["--key-name", "bought"], "gateway plans activate gold"],
    ["a group whose plan is not active", ["--group", "gold"], "gateway plans activate gold"],
    ["a disabled key", ["--key-name", "off"], "gateway keys enable off"],
    ["an expired key", ["--key-name", "old"], "gateway keys rotate old"],
  ])("lists nothing for %s, and says what to do", async (_, flags, advice) => {
    const { status, stdout, stderr } = await models(...flags);
    expect({ status, stdout }).toEqual({ status: 1, stdout: "" });
    expect(stderr).toContain(advice);
  });
});
