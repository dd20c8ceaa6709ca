// What ends in the middle of a converted answer: the upstream, the client, the gateway.

import { afterAll, describe, expect, test } from "bun:test";
import { DIALECT_NAMES, type DialectName } from "../../../src/dialects/dialect.ts";
import type { Any } from "../../bridges/calls.ts";
import { formRequest, formUser } from "../../bridges/session.ts";
import { startGateway, startGatewayHere } from "../../harness/gateway.ts";
import { makeTempFolder } from "../../harness/temp.ts";
import { flushLedger } from "../world.ts";
import { type Played, type ScriptedUpstream, startScriptedUpstream } from "./scripted-upstream.ts";

const stops: (() => unknown)[] = [];

afterAll(async () => {
  for (const stop of stops) await stop();
});

/** Its thought and its text come in many events, and half of them is sent. */
function openUpstream(dialect: DialectName, breaks: "cut" | "stalls"): ScriptedUpstream {
  const turn = { thought: "I think about it.", text: "This answer is long. ".repeat(20), calls: [] };
  const upstream = startScriptedUpstream(dialect, (): Played => ({ turn, breaks }));
  stops.push(() => upstream.stop());
  return upstream;
}

const SECRET = "sk-test-broken";
const describeConfig = (client: DialectName, dialect: DialectName, { url }: ScriptedUpstream): Any => ({
  channels: {
    far: {
      platform: dialect,
      base_url: url,
      credential: "credential-of-far",
      aliases: { "*": "gpt-5.1" },
      price_provider: "openai",
    },
  },
  groups: { g: { platform: client === "chat" ? "responses" : client, channels: ["far"], convert: true } },
  keys: [{ name: "k", group: "g", secret: SECRET }],
});

const PATHS: Readonly<Record<DialectName, string>> = {
  messages: "/v1/messages",
  responses: "/v1/responses",
  chat: "/v1/chat/completions",
  content: "/v1beta/models/m:streamGenerateContent?alt=sse",
};

function ask(url: string, client: DialectName, signal: AbortSignal | null = null): Promise<Response> {
  const history = formUser(client, { results: [], text: "Hello", image: false }, []);
  return fetch(url + PATHS[client], {
    method: "POST",
    body: JSON.stringify(formRequest(client, history, true)),
    headers: { authorization: `Bearer ${SECRET}`, "content-type": "application/json" },
    signal,
  });
}

/** What a client takes for the end of an answer, and what it takes for an error. */
const ENDS: Readonly<Record<DialectName, RegExp>> = {
  messages: /message_stop/,
  responses: /response\.(?:completed|incomplete)/,
  chat: /\[DONE\]|"finish_reason":"/,
  content: /finishReason/,
};
const ERRORS: Readonly<Record<DialectName, RegExp>> = {
  messages: /event: error/,
  responses: /response\.failed|event: error/,
  chat: /"error":\{/,
  content: /"error":\{/,
};

const DIRECTIONS = DIALECT_NAMES.flatMap((client) =>
  DIALECT_NAMES.filter((upstream) => upstream !== client).map((upstream) => [client, upstream] as const),
);

describe.each(DIRECTIONS)("%s clients on a %s channel", (client, dialect) => {
  test(`an answer of a ${dialect} channel that is cut is an error for a ${client} client, and billed as far as it came`, async () => {
    const upstream = openUpstream(dialect, "cut");
    const gateway = startGatewayHere({ config: describeConfig(client, dialect, upstream) });
    stops.push(() => gateway.stop());
    const answer = await ask(gateway.url, client);
    const text = await answer.text().catch((error: unknown) => `"error":{${String(error)}`);
    expect([answer.status, ENDS[client].test(text), ERRORS[client].test(text)]).toEqual([200, false, true]);
    await gateway.recorded(1);
    await flushLedger();
    const [line]: Any = gateway.ledger();
    expect([line.outcome, line.basis]).toEqual(["upstream_cut", "partial"]);
    expect(line.usage.output).toBeGreaterThan(0);
  });

  test(`a ${client} client that leaves in the middle ends the request to a ${dialect} channel, and gets its bill`, async () => {
    const upstream = openUpstream(dialect, "stalls");
    const gateway = startGatewayHere({ config: describeConfig(client, dialect, upstream) });
    stops.push(() => gateway.stop());
    const leaving = new AbortController();
    const answer = await ask(gateway.url, client, leaving.signal);
    await answer.body?.getReader().read();
    leaving.abort();
    await gateway.recorded(1);
    await flushLedger();
    const [line]: Any = gateway.ledger();
    expect([line.outcome, line.converted ?? dialect]).toEqual(["client_closed", dialect]);
    expect(line.usage.output).toBeGreaterThan(0);
  });
});

test("a gateway that is killed in the middle of a converted answer has its line after the next start", async () => {
  using folder = makeTempFolder();
  const upstream = openUpstream("chat", "stalls");
  const start = () =>
    startGateway({
      config: describeConfig("messages", "chat", upstream),
      folder,
      env: { XDG_RUNTIME_DIR: folder.path },
    });
  const before = await start();
  const answer = await ask(before.url, "messages");
  const reader = answer.body?.getReader();
  await reader?.read();
  before.signal("SIGKILL");
  await before.exited;
  const after = await start();
  await after.stop();
  expect(after.ledger()).toMatchObject([{ outcome: "interrupted", channel: "far", basis: "unknown" }]);
});
