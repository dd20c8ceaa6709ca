// What `gateway serve` reports at its start: damaged lines, models without a price, misleading variables, and a gateway
// that runs already.

import { afterEach, beforeEach, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { type DemoUpstream, startDemoUpstream } from "../../harness/upstreams/demo-upstream.ts";
import { draftOf } from "../../billing/ledger/ledger-samples.ts";
import { encodeLine, GENESIS } from "../../../src/billing/ledger/line.ts";
import { type ChildGateway, makeConfig, startGateway } from "../../harness/gateway.ts";
import { makeTempFolder, type TempFolder } from "../../harness/temp.ts";

let folder: TempFolder;
let upstream: DemoUpstream;
beforeEach(() => {
  folder = makeTempFolder();
  upstream = startDemoUpstream();
});
afterEach(() => {
  upstream.stop();
  folder.remove();
});

async function warned(gateway: ChildGateway, text: string): Promise<void> {
  while (!gateway.stderr().includes(text)) await Bun.sleep(5);
}

const QUIET = Object.fromEntries(
  [
    "ANTHROPIC_API_KEY",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "http_proxy",
    "https_proxy",
    "all_proxy",
  ].map((name) => [name, ""]),
);

test("a port that another gateway uses is named as that gateway's", async () => {
  const gateway = await startGateway({ config: makeConfig(upstream), env: QUIET });
  const listen = { port: gateway.port };
  const second = startGateway({ config: makeConfig(upstream, { listen }), folder, env: QUIET });
  const failure = await second.then(
    () => "",
    (error: unknown) => String(error),
  );
  await gateway.stop();
  expect(failure).toContain(
    `A gateway with another config, or a demo, runs on http://127.0.0.1:${gateway.port} already.`,
  );
});

test("damaged lines in the middle and models without a price are reported", async () => {
  const lines = ["req_1", "req_2", "req_3"].map((id) =>
    encodeLine(
      draftOf(id, { channel: "messages", model: "nobody-sells-this", upstream_model: "nobody-sells-this" }),
      GENESIS,
    ),
  );
  lines[1] = "{ damaged";
  writeFileSync(folder.join("ledger.jsonl"), `${lines.join("\n")}\n`);
  const gateway = await startGateway({ config: makeConfig(upstream), folder, env: QUIET });
  await warned(
    gateway,
    "warning: 1 line of the ledger cannot be read and is missing from all amounts: `gateway ledger verify`",
  );
  await warned(
    gateway,
    "warning: models in use have no price: nobody-sells-this. `gateway prices check` says what to do",
  );
  expect(await gateway.stop()).toBe(0);
});

test("variables and proxies that lead tools past the gateway are named, without their values", async () => {
  const env = { ...QUIET, ANTHROPIC_API_KEY: "sk-ant-secret-1", HTTPS_PROXY: "http://user:hush@127.0.0.1:9" };
  const gateway = await startGateway({ config: makeConfig(upstream), folder, env });
  await warned(
    gateway,
    "note: ANTHROPIC_API_KEY, HTTPS_PROXY are set here and can lead tools past the gateway. Start them",
  );
  expect(await gateway.stop()).toBe(0);
  expect(gateway.stderr()).not.toMatch(/sk-ant-secret|hush/);
});

test("a second gateway says where the first one runs, and what to do", async () => {
  using other = makeTempFolder();
  const config = makeConfig(upstream, { ledger: { path: folder.join("ledger.jsonl") } });
  const first = await startGateway({ config, folder });
  const refused = await startGateway({ config, folder: other }).then(() => "it started", String);
  expect(refused).toContain(
    `gateway: The ledger ${folder.join("ledger.jsonl")} is being written by process ${first.pid} since`,
  );
  expect(refused).toContain(
    `: a gateway runs on ${first.url} already. Use that one, or stop it with \`kill ${first.pid}\`. ` +
      "For a second gateway, set another `ledger.path` and port in its config.\n",
  );
  await first.stop();
});
