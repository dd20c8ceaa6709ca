// Tests that a ledger line says who sent the request: tool, session, agent and label, and the upstream's id of the request.

import { expect, onTestFinished, test } from "bun:test";
import { listProblems } from "../../billing/ledger/ledger-samples.ts";
import type { Answer } from "../../harness/model/answers/answer.ts";
import { startDemoUpstream, makeGate } from "../../harness/upstreams/demo-upstream.ts";
import { sha256Hex } from "../../../src/lib/secret.ts";
import { readWholeLedger } from "../../billing/ledger/ledger-samples.ts";
import { CREDENTIAL, makeConfig, startGateway, startGatewayHere } from "../../harness/gateway.ts";
import { rawRequest, type RequestLines } from "../../harness/raw.ts";
import { makeTempFolder } from "../../harness/temp.ts";
import { bearer, DIALECTS, openOwnWorld, makeRequest } from "../world.ts";

const SESSION = "db7f03b5-105b-464a-ba35-e8c230eff292";
const CLAUDE = { "user-agent": "claude-cli/2.1.330 (external, cli)", "x-claude-code-session-id": SESSION };
const SUBAGENT = { ...CLAUDE, "x-claude-code-agent-id": "a2", "x-claude-code-parent-agent-id": "a1" };

function withFields(request: RequestLines, fields: Record<string, string>): RequestLines {
  return { ...request, fields: { ...request.fields, ...fields } };
}

test("P144: the line says who sent a request, in every dialect, and the label does not go upstream", async () => {
  const world = openOwnWorld();
  for (const dialect of DIALECTS) {
    for (const stream of [false, true]) {
      const request = withFields(makeRequest(dialect, stream), { ...SUBAGENT, "x-gateway-label": "größe" });
      const { lines, received } = await world.trace(request);
      const client = { tool: "claude-code", session: SESSION, agent: "a2", parent: "a1", label: "größe" };
      expect(lines).toMatchObject([{ client }]);
      expect(received!.fields.map(([name]) => name)).not.toContain("x-gateway-label");
      expect(received!.fields.map(([name]) => name)).toContain("x-claude-code-agent-id");
    }
  }
});

test("P144: if a tool names no session, the gateway infers one, and the line marks it as inferred", async () => {
  const world = openOwnWorld();
  const gemini = { "user-agent": "GeminiCLI-tui/0.61.0/gemini-3.1-pro-preview (linux; x64; terminal)" };
  const [one] = (await world.trace(withFields(makeRequest("content"), gemini))).lines;
  const [two] = (await world.trace(withFields(makeRequest("content"), gemini))).lines;
  expect(one).toMatchObject({ client: { tool: "gemini-cli", inferred: true } });
  expect(two!["client"]).toEqual(one!["client"]);
  const [named] = (await world.trace(withFields(makeRequest("messages"), CLAUDE))).lines;
  expect(named!["client"]).toEqual({ tool: "claude-code", version: "2.1.330", session: SESSION });
  const sdk = { "user-agent": "Anthropic/JS 0.115.0" };
  const [library] = (await world.trace(withFields(makeRequest("messages"), sdk))).lines;
  expect(library).toMatchObject({ client: { tool: "anthropic", version: "0.115.0" } });
});

const OK: Answer = {
  family: "messages",
  status: 200,
  framing: "length",
  fields: [["content-type", "application/json"]],
  pieces: [
    Buffer.from(
      '{"type":"message","model":"claude-haiku-4-5","content":[],"usage":{"input_tokens":1,"output_tokens":1}}',
    ),
  ],
};

test("P144: the line has the id that the upstream gave the request, and never a credential", async () => {
  const world = openOwnWorld();
  const idAfter = async (...fields: readonly (readonly [string, string])[]): Promise<unknown> => {
    world.upstream.next({ answer: { ...OK, fields: [...OK.fields, ...fields] } });
    const { lines } = await world.trace(makeRequest("messages"));
    return lines[0]!["upstream_request_id"];
  };
  expect(await idAfter(["request-id", "req_011C"])).toBe("req_011C");
  expect(await idAfter(["x-request-id", "abc"], ["request-id", "req_2"])).toBe("req_2");
  expect(await idAfter(["x-request-id", "a b"])).toBe(sha256Hex("a b"));
  expect(await idAfter(["apim-request-id", "azure"])).toBe("azure");
  expect(await idAfter(["request-id", CREDENTIAL])).toBeUndefined();
  expect(await idAfter(["request-id", `x:${CREDENTIAL.slice(0, -1)}`])).toBeUndefined();
  expect(await idAfter()).toBeUndefined();
});

test("a background response belongs to the session that began it", async () => {
  const world = openOwnWorld();
  const reported = (status: string, usage: unknown = null): Answer => ({
    ...OK,
    family: "responses",
    pieces: [Buffer.from(JSON.stringify({ id: "resp_1", object: "response", model: "m", status, usage }))],
  });
  const begin = {
    target: "/v1/responses",
    fields: bearer("responses"),
    body: { model: "m", background: true },
  };
  const fetch = { target: "/v1/responses/resp_1", fields: bearer("responses") };
  world.upstream.next({ answer: reported("queued") });
  const [first] = (await world.trace(withFields(begin, CLAUDE))).lines;
  world.upstream.next({ answer: reported("completed", { input_tokens: 10, output_tokens: 4 }) });
  const [second] = (await world.trace(withFields(fetch, { "user-agent": "curl/8" }))).lines;
  expect(first).toMatchObject({ basis: "unknown", client: { session: SESSION } });
  expect(second).toMatchObject({ usage: { output: 4 }, client: { tool: "claude-code", session: SESSION } });
});

test("the line of a request that a killed gateway left behind says who sent it", async () => {
  using folder = makeTempFolder();
  const gate = makeGate();
  const upstream = startDemoUpstream({ credential: CREDENTIAL });
  upstream.next({ gates: { [-1]: gate } });
  const config = makeConfig(upstream);
  const killed = await startGateway({ config, folder });
  const answer = rawRequest(killed.port, withFields(makeRequest("messages"), SUBAGENT)).catch(() => null);
  await gate.reached;
  killed.signal("SIGKILL");
  await Promise.all([killed.exited, answer]);
  const again = startGatewayHere({ config, folder });
  await again.stop();
  gate.open();
  upstream.stop();
  const path = folder.join("ledger.jsonl");
  expect(readWholeLedger(path).lines).toMatchObject([
    { outcome: "interrupted", client: { tool: "claude-code", session: SESSION, agent: "a2", parent: "a1" } },
  ]);
  expect(listProblems(path)).toEqual([]);
});

test("the log says who sent a request that was refused", async () => {
  const upstream = startDemoUpstream();
  const config = makeConfig(upstream);
  const keys = config.keys.map((key) => ({ ...key, limits: { requests_per_minute: 1 } }));
  const gateway = startGatewayHere({ config: { ...config, keys } });
  const old = JSON.stringify({
    model: "claude-haiku-4-5",
    max_tokens: 9,
    messages: [{ role: "user", content: "hi" }],
    metadata: { user_id: JSON.stringify({ session_id: SESSION }) },
  });
  const request = withFields(makeRequest("messages"), {
    "user-agent": CLAUDE["user-agent"],
    "x-gateway-label": "a",
  });
  const known = { tool: "claude-code", version: "2.1.330", session: SESSION, label: "a" };
  const shown = { tool: "claude-code", version: "2.1.330", label: "a" };
  onTestFinished(() => gateway.stop());
  onTestFinished(() => upstream.stop());
  await rawRequest(gateway.port, { ...request, body: old });
  await rawRequest(gateway.port, { ...request, body: old });
  await rawRequest(gateway.port, { ...request, body: "no JSON" });
  await rawRequest(gateway.port, withFields(request, { authorization: "Bearer sk-unknown" }));
  await rawRequest(gateway.port, { ...request, target: "/nowhere" });
  const records = await gateway.recorded(5);
  expect(JSON.parse(JSON.stringify(records.map(({ status, client }) => [status, client])))).toEqual([
    [200, known],
    [429, known],
    [400, shown],
    [401, shown],
    [404, shown],
  ]);
});
