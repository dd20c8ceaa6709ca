// One rule for everything that leaves a request: no key and no credential, whichever field it was put into.

import { afterAll, beforeAll, expect, test } from "bun:test";
import { recognise } from "../../../src/dialects/index.ts";
import { KnownSecrets } from "../../../src/gateway/intake/known-secrets.ts";
import { handle } from "../../../src/gateway/pipeline.ts";
import { Request } from "../../../src/gateway/request.ts";
import type { Field } from "../../../src/lib/http1/types.ts";
import { keyOf } from "../../harness/gateway.ts";
import { openScripted, RecordedExchange, type Scripted } from "../scripted.ts";

const KEY = "sk-Ab1Cd2Ef3Gh4Ij5Kl6Mn7Op8Qr9St0Uv1Wx2Yz3";
const OTHER_KEY = "correct-horse-battery-staple";
const CREDENTIAL = "cred-na-0123456789abcdef";
const SECRETS: Readonly<Record<string, string>> = {
  "the request's key": KEY,
  "another key": OTHER_KEY,
  "a credential": CREDENTIAL,
};

const OK = { chunks: ['{"type":"message","model":"m","usage":{"input_tokens":5,"output_tokens":7}}'] };

let scripted: Scripted;
beforeAll(async () => {
  scripted = await openScripted({
    channels: { a: Array.from({ length: 100 }, () => OK) },
    more: {
      channels: { a: { platform: "messages", base_url: "http://127.0.0.1:1", credential: CREDENTIAL } },
      keys: [
        { name: "k", group: "g", secret: KEY },
        { name: "other", group: "g", secret: OTHER_KEY },
      ],
    },
  });
});
afterAll(() => scripted.stop());

interface Sent {
  readonly query?: string;
  readonly field?: Field;
  readonly model?: string;
}

/** By field: a request that has the secret there. */
const PLACES: Readonly<Record<string, (secret: string) => Sent>> = {
  "the parameter api_key": (secret) => ({ query: `?beta=true&api_key=${secret}` }),
  "an escaped parameter": (secret) => ({ query: `?t=${encodeURIComponent(`Bearer ${secret}`)}&beta=true` }),
  "the name of a parameter": (secret) => ({ query: `?${secret}` }),
  "x-session-id": (secret) => ({ field: ["x-session-id", secret] }),
  "a part of session-id": (secret) => ({ field: ["session-id", `session:${secret}`] }),
  "x-gateway-label": (secret) => ({ field: ["x-gateway-label", `mine is ${secret}`] }),
  "the user agent": (secret) => ({ field: ["user-agent", `${secret}/1.0`] }),
  "the model": (secret) => ({ model: secret }),
};

async function send({ query = "", field, model = "m" }: Sent): Promise<RecordedExchange> {
  const { gateway } = scripted;
  const fields: Field[] = [["x-api-key", KEY], ...(field === undefined ? [] : [field])];
  const exchange = new RecordedExchange(`/v1/messages${query}`, fields, {
    model,
    max_tokens: 9,
    messages: [{ role: "user", content: "Hi" }],
  });
  const found = recognise(exchange, gateway.catalog);
  if (found.kind !== "target") throw new Error("not an endpoint");
  const id = `req_${scripted.records().length}`;
  handle(new Request({ id, exchange, time: gateway.now(), arrived: performance.now() }, found), gateway);
  while (exchange.ended === "open") await new Promise(setImmediate);
  gateway.finished.flush();
  return exchange;
}

/** Fields of requests are the lists of headers.ts, which headers.test.ts proves. */
function listTraces(): string {
  const targets = scripted.requests.map(({ target }) => target);
  return JSON.stringify([
    targets,
    scripted.records(),
    scripted.ledger(),
    scripted.notices,
    scripted.journal(),
  ]);
}

const CASES = Object.keys(PLACES).flatMap((place) =>
  Object.keys(SECRETS).map((secret) => [secret, place] as const),
);

test.each(CASES)("%s in %s goes nowhere", async (secret, place) => {
  const text = SECRETS[secret] ?? "";
  const before = scripted.requests.length;
  const sent = PLACES[place]?.(text) ?? {};
  const { status } = await send(sent);
  expect(status).toBe(sent.model === undefined ? 200 : 400);
  if (sent.query?.includes("beta") === true)
    expect(scripted.requests.slice(before).map(({ target }) => target)).toEqual(["/v1/messages?beta=true"]);
  if (sent.model === undefined) expect(scripted.ledger()).toHaveLength(scripted.requests.length);
  expect(listTraces()).not.toContain(text);
});

test("a key in the place of a response's id is refused", async () => {
  const other = await openScripted({ channels: { a: [OK] }, platform: "responses", target: "/v1/responses" });
  const target = `/v1/responses/${keyOf("responses")}/cancel`;
  const exchange = new RecordedExchange(target, [["authorization", `Bearer ${keyOf("responses")}`]], {});
  const found = recognise(exchange, other.gateway.catalog);
  if (found.kind !== "target") throw new Error("not an endpoint");
  handle(new Request({ id: "req_path", exchange, time: 0, arrived: 0 }, found), other.gateway);
  while (exchange.ended === "open") await new Promise(setImmediate);
  expect([exchange.status, other.requests]).toEqual([400, []]);
  await other.stop();
});

test("ids, labels and parameters without a secret stay as they are", async () => {
  await send({ query: "?beta=true&a=%20b", field: ["x-session-id", "session-1"] });
  expect(scripted.requests.at(-1)?.target).toBe("/v1/messages?beta=true&a=%20b");
  expect(scripted.records().at(-1)?.client).toMatchObject({ session: "session-1" });
});

test("a word that many credentials are is not taken for a secret", () => {
  const channel = { credential: "ollama", headers: [] };
  const channels = new Map([["a", { ...scripted.gateway.catalog.channels.get("a")!, ...channel }]]);
  const secrets = new KnownSecrets({ ...scripted.gateway.catalog, channels });
  expect(secrets.mask("ollama and sk-no")).toBe("ollama and sk-no");
});
