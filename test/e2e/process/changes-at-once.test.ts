// A command that changes the config returns when the running gateway uses the change, or says why it does not.

import { afterEach, beforeEach, expect, test } from "bun:test";
import { readFileSync, writeFileSync } from "node:fs";
import { type DemoUpstream, startDemoUpstream } from "../../harness/upstreams/demo-upstream.ts";
import { run } from "../../cli/driving.ts";
import { type ChildGateway, CREDENTIAL, makeConfig, startGateway } from "../../harness/gateway.ts";
import { rawRequest } from "../../harness/raw.ts";
import { makeSweptFolder } from "../../harness/temp.ts";
import { knownFields, signInBy, visit } from "../../web/visitor.ts";
import { makeRequest, MESSAGE } from "../world.ts";

let upstream: DemoUpstream;
let gateway: ChildGateway;
beforeEach(async () => {
  upstream = startDemoUpstream({ credential: CREDENTIAL });
  gateway = await startGateway({ config: makeConfig(upstream) });
});
afterEach(async () => {
  await gateway.stop();
  upstream.stop();
});

const command = (...args: string[]) => run({ folder: gateway.folder.path }, ...args);

async function ask(secret: string): Promise<number | undefined> {
  const request = { ...makeRequest("messages"), fields: { "x-api-key": secret } };
  return (await rawRequest(gateway.port, request)).status;
}

async function addKey(name: string): Promise<string> {
  const { status, stdout, stderr } = await command("keys", "add", "--name", name, "--group", "messages");
  expect([status, stderr]).toEqual([0, expect.not.stringContaining("gateway")]);
  return stdout.trim();
}

test("a key works as soon as `keys add` has returned, five times of five", async () => {
  for (let round = 1; round <= 5; round += 1) {
    const secret = await addKey(`ci-${round}`);
    expect([round, await ask(secret)]).toEqual([round, 200]);
  }
});

test("a key is dead as soon as the command has returned that disabled, replaced, moved or removed it", async () => {
  const secret = await addKey("ci");
  await command("keys", "disable", "ci");
  expect(await ask(secret)).toBe(401);
  await command("keys", "enable", "ci");
  expect(await ask(secret)).toBe(200);
  await command("keys", "move", "ci", "--group", "responses");
  expect(await ask(secret)).toBe(403);
  await command("keys", "move", "ci", "--group", "messages");
  await command("keys", "limit", "ci", "requests_per_minute=1");
  expect([await ask(secret), await ask(secret)]).toContain(429);
  await command("keys", "limit", "ci", "requests_per_minute=none");
  const { stdout } = await command("keys", "rotate", "ci");
  expect([await ask(secret), await ask(stdout.trim())]).toEqual([401, 200]);
  await command("keys", "remove", "ci", "--yes");
  expect(await ask(stdout.trim())).toBe(401);
});

test("a changed channel, group and price are in force when the command has returned", async () => {
  const secret = await addKey("ci");
  await command("prices", "set", MESSAGE.model, "input=1000", "output=1000");
  await command("groups", "set", "messages", "multiplier=2");
  expect(await ask(secret)).toBe(200);
  while (gateway.ledger().length === 0) await Bun.sleep(1);
  const [line] = gateway.ledger();
  expect(line).toMatchObject({ price_source: "config", multiplier: "2" });
  await command("channels", "set", "messages", "disabled=true");
  expect(await ask(secret)).toBe(503);
});

test("a config that the gateway refuses: the secret is printed, the reason too, and the status is 1", async () => {
  const change = ["channels", "set", "messages", "credential=${NOT_SET_FOR_THE_GATEWAY}", "--no-check"];
  const { status, stderr } = await command(...change);
  expect(status).toBe(1);
  expect(stderr).toContain("the running gateway refuses the file");
  expect(stderr).toContain("NOT_SET_FOR_THE_GATEWAY is not set");
  const added = await command("keys", "add", "--name", "ci", "--group", "messages");
  expect([added.status, added.stdout]).toEqual([1, expect.stringMatching(/^sk-\S+\n$/)]);
  expect(added.stderr).toContain("NOT_SET_FOR_THE_GATEWAY is not set");
  expect(await ask(added.stdout.trim())).toBe(401);
});

test("a gateway that stands still: the command says that it may follow later, and the status is 0", async () => {
  const secret = await addKey("ci");
  gateway.signal("SIGSTOP");
  const { status, stderr } = await command("keys", "disable", "ci");
  gateway.signal("SIGCONT");
  expect(status).toBe(0);
  expect(stderr).toContain(
    "has not confirmed that it uses the change: no answer in 2 s. It may follow later.",
  );
  while (gateway.stderr().split("the changes are applied").length < 3) await Bun.sleep(1);
  expect(await ask(secret)).toBe(401);
});

test("without a gateway, also after one that was killed, a command waits for nobody", async () => {
  gateway.signal("SIGKILL");
  await gateway.exited;
  expect(await addKey("ci")).toStartWith("sk-");
});

test("a gateway with the same ledger and another config file is named", async () => {
  const folder = makeSweptFolder();
  const ledger = { path: gateway.folder.join("ledger.jsonl") };
  writeFileSync(`${folder}/gateway.yaml`, JSON.stringify({ ...makeConfig(upstream), ledger }), {
    mode: 0o600,
  });
  const { status, stderr } = await run({ folder }, "keys", "disable", "messages");
  expect(status).toBe(0);
  expect(stderr).toContain(`The running gateway uses another config file (${gateway.configPath})`);
});

test("a change by the page is in force when the page has its answer", async () => {
  const link = (await command("open", "--print")).stdout.trim();
  const fields = knownFields(gateway, await signInBy(gateway, link));
  const send = async (
    action: string,
    body: object,
  ): Promise<{ secret?: { text: string }; problem: unknown }> =>
    JSON.parse((await visit(gateway, `/console/api/keys/${action}`, { body, fields })).text);
  const wish = { name: "ci", group: "messages", expires: "never", limits: {} };
  const { secret, problem } = await send("new", wish);
  expect([await ask(secret?.text ?? ""), problem]).toEqual([200, null]);
  await send("change", { name: "ci", action: "disable" });
  expect(await ask(secret?.text ?? "")).toBe(401);
  const text = readFileSync(gateway.configPath, "utf8");
  writeFileSync(gateway.configPath, text.replace(CREDENTIAL, "${NOT_SET_FOR_THE_GATEWAY}"));
  const refused = await send("change", { name: "ci", action: "rotate" });
  expect(refused.secret?.text).toStartWith("sk-");
  expect(refused.problem).toContain("NOT_SET_FOR_THE_GATEWAY is not set");
});
