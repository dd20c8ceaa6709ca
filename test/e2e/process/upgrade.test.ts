// A config, a ledger and a journal that gateway 0.1.0 wrote, and the lock of that version. upgrade-0.1.0/ has them as
// `init`, `keys add`, two requests and a kill -9 during a third one left them.

import { Database } from "bun:sqlite";
import { afterEach, beforeEach, expect, test } from "bun:test";
import { chmodSync, cpSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type DemoUpstream, startDemoUpstream } from "../../harness/upstreams/demo-upstream.ts";
import { run } from "../../cli/driving.ts";
import { startGateway } from "../../harness/gateway.ts";
import { makeTempFolder, readLedger, type TempFolder } from "../../harness/temp.ts";

const SAMPLES = join(import.meta.dir, "upgrade-0.1.0");
const FILES = ["gateway.yaml", "ledger.jsonl", "ledger.jsonl.open"];

let folder: TempFolder;
let upstream: DemoUpstream;
beforeEach(() => {
  folder = makeTempFolder();
  upstream = startDemoUpstream({ platform: "messages" });
  for (const name of FILES) {
    cpSync(join(SAMPLES, name), folder.join(name));
    chmodSync(folder.join(name), 0o600);
  }
  const config = readFileSync(folder.join("gateway.yaml"), "utf8");
  writeFileSync(folder.join("gateway.yaml"), config.replace("http://127.0.0.1:1", upstream.url));
  for (const name of [".gateway.yaml.lock", "ledger.jsonl.lock"]) {
    const database = new Database(folder.join(name));
    database.run("CREATE TABLE holder (pid INTEGER, since TEXT)");
    database.close();
  }
});
afterEach(() => {
  upstream.stop();
  folder.remove();
});

const ENV = { ANTHROPIC_API_KEY: "the-credential" };
const ask = (url: string): Promise<Response> =>
  fetch(`${url}/v1/messages`, {
    method: "POST",
    headers: { "x-api-key": "sk-upgrade-ci", "content-type": "application/json" },
    body: JSON.stringify({
      model: "claude-haiku-4-5",
      max_tokens: 64,
      messages: [{ role: "user", content: "Hello" }],
    }),
  });

test("the new version goes on with them: reports, keys, the request that was cut short, and the chain", async () => {
  const at = { folder: folder.path, env: ENV };
  expect(JSON.parse((await run(at, "usage", "--json")).stdout).total).toMatchObject({
    requests: 2,
    charge_usd: "0.000206",
  });
  expect((await run(at, "ledger", "verify")).status).toBe(0);

  const config = readFileSync(folder.join("gateway.yaml"), "utf8").replace("port: 4141", "port: 0");
  const gateway = await startGateway({ config, folder, env: ENV });
  expect((await ask(gateway.url)).status).toBe(200);
  const added = await run(
    at,
    "keys",
    "add",
    "--name",
    "new",
    "--group",
    "claude",
    "--limit",
    "usd_per_day=5",
  );
  expect(added.status).toBe(0);
  expect(await gateway.stop()).toBe(0);

  const lines = readLedger(folder.join("ledger.jsonl"));
  expect(lines.map(({ outcome }) => outcome)).toEqual(["complete", "complete", "interrupted", "complete"]);
  expect(lines.slice(0, 2)).toEqual(readLedger(join(SAMPLES, "ledger.jsonl")));
  const verified = await run(at, "ledger", "verify");
  expect([verified.status, verified.stdout]).toEqual([0, expect.stringContaining("4 lines verified")]);
  const [claude, ci, fresh] = JSON.parse((await run(at, "keys", "list", "--json")).stdout);
  expect(claude.name).toBe("claude");
  expect(ci).toMatchObject({ name: "ci", spent_total_usd: expect.stringMatching(/^0\.0003/) });
  expect(fresh).toMatchObject({ name: "new", limits: { usd_per_day: "5" } });
  // Its comments are still there.
  const comments = (text: string): string[] => text.match(/#.*/g) ?? [];
  expect(comments(readFileSync(folder.join("gateway.yaml"), "utf8"))).toEqual(
    comments(readFileSync(join(SAMPLES, "gateway.yaml"), "utf8")),
  );
});
