// One rule for everything that leaves a request: no key and no credential, whichever field it was put into.

import { afterAll, beforeAll, expect, test } from "bun:test";
import { recognise } from "../../../src/dialects/index.ts";
import { KnownSecrets, secretsOf } from "../../../src/gateway/intake/known-secrets.ts";
import { handle } from "../../../src/gateway/pipeline.ts";
import { Request } from "../../../src/gateway/request.ts";
import { convertedFields } from "../../../src/gateway/upstream/headers.ts";
import { type Field, Fields } from "../../../src/lib/http/fields.ts";
import { keyOf } from "../../harness/gateway.ts";
import { openScripted, RecordedExchange, type Scripted } from "../scripted.ts";

const KEY = "sk-Ab1Cd2Ef3Gh4Ij5Kl6Mn7Op8Qr9St0Uv1Wx2Yz3";
const OTHER_KEY = "Correct-Horse-battery-staple";
const CREDENTIAL = "Cred-NA-0123456789abcdef";
const SECRETS: Readonly<Record<string, string>> = {
  "the request's key": KEY,
  "another key": OTHER_KEY,
  "a credential": CREDENTIAL,
};

const OK = { chunks: ['{"type":"message","model":"m","usage":{"input_tokens":5,"output_tokens":7}}'] };

let scripted: Scripted;
beforeAll(async () => {
  scripted = await openScripted({
    channels: { a: Array.from({ length: 200 }, () => OK) },
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
  readonly fields?: readonly Field[];
  readonly model?: string;
}

/** By place: a request that has the secret there. */
const PLACES: Readonly<Record<string, (secret: string) => Sent>> = {
  "the parameter api_key": (secret) => ({ query: `?beta=true&api_key=${secret}` }),
  "an escaped parameter": (secret) => ({ query: `?t=${encodeURIComponent(`Bearer ${secret}`)}&beta=true` }),
  "the name of a parameter": (secret) => ({ query: `?${secret}` }),
  "x-session-id": (secret) => ({ field: ["x-session-id", secret] }),
  "a part of session-id": (secret) => ({ field: ["session-id", `session:${secret}`] }),
  "x-gateway-label": (secret) => ({ field: ["x-gateway-label", `mine is ${secret}`] }),
  "the user agent": (secret) => ({ field: ["user-agent", `${secret}/1.0`] }),
  "a word of the user agent": (secret) => ({ field: ["user-agent", `tool ${secret}/1.0`] }),
  "x-gateway-tool": (secret) => ({ field: ["x-gateway-tool", `tool ${secret}`] }),
  "the model": (secret) => ({ model: secret }),
  "the name of a header": (secret) => ({ field: [`x-${secret.toLowerCase()}`, "1"] }),
  "an unknown header": (secret) => ({ field: ["x-unheard-of", secret] }),
  "a header after a scheme": (secret) => ({ field: ["helicone-auth", `Bearer ${secret}`] }),
  "a header of JSON": (secret) => ({ field: ["x-codex-turn-metadata", JSON.stringify({ a: [secret] })] }),
  "a header with escapes": (secret) => ({ field: ["x-unheard-of", secret.replace("-", "%2D")] }),
  "a list in a header": (secret) => ({ field: ["anthropic-beta", `a-2025,${secret}`] }),
  traceparent: (secret) => ({ field: ["traceparent", secret] }),
};

async function send({ query = "", field, fields: more = [], model = "m" }: Sent): Promise<RecordedExchange> {
  const { gateway } = scripted;
  const fields: Field[] = [["x-api-key", KEY], ...(field === undefined ? more : [field])];
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

/** A channel's own credential is sent to its upstream, in one field. */
const OWN_FIELD = "x-api-key";

function listTraces(): string {
  const requests = scripted.requests.map(({ target, fields }) => [
    target,
    [...fields].filter(([name]) => name !== OWN_FIELD),
  ]);
  return JSON.stringify([
    requests,
    scripted.records(),
    scripted.ledger(),
    scripted.notices,
    scripted.journal(),
  ]);
}

/** Of other keys only the hashes are known, so that one which does not begin with `sk-` is lost in lower case. */
const isLost = (secret: string, place: string): boolean =>
  secret === "another key" && place === "the name of a header";
const CASES = Object.keys(PLACES).flatMap((place) =>
  Object.keys(SECRETS).flatMap((secret) => (isLost(secret, place) ? [] : [[secret, place] as const])),
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
  const traces = listTraces().toLowerCase();
  expect(traces).not.toContain(text.toLowerCase());
  expect(traces).not.toContain(text.toLowerCase().replace("-", "%2d"));
});

const NAME_LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789-_";

test("no header that a client makes up takes a secret upstream, whatever its name and its neighbours", async () => {
  let seed = 1;
  const draw = (count: number): number => (seed = (seed * 48_271) % 2_147_483_647) % count;
  const secrets = [...Object.values(SECRETS), "sk-of-another-gateway-0123"];
  for (let round = 0; round < 60; round += 1) {
    const fields = Array.from({ length: 1 + draw(6) }, (): Field => {
      const name = Array.from({ length: 1 + draw(20) }, () => NAME_LETTERS[draw(NAME_LETTERS.length)]).join(
        "",
      );
      const secret = secrets[draw(secrets.length)] ?? "";
      const forms = [
        "plain",
        secret,
        `Token ${secret}`,
        `a=${secret}; b`,
        `"${secret}"`,
        `${secret}, ${secret}`,
      ];
      return [`made-up-${name}`, forms[draw(forms.length)] ?? ""];
    });
    const before = scripted.requests.length;
    await send({ fields });
    const kept = fields.filter(([, value]) => value === "plain");
    const sent = [...(scripted.requests[before]?.fields ?? [])].filter(([name]) =>
      name.startsWith("made-up-"),
    );
    expect(sent).toEqual(kept);
  }
});

test("a request that is converted loses them, too", () => {
  const secrets = secretsOf(scripted.gateway.catalog);
  const fields = Fields.of([
    ["user-agent", `codex/${KEY}`],
    ["traceparent", "00-1"],
  ]);
  const names = [...convertedFields(fields, secrets)].map(([name]) => name);
  expect(names).toEqual(["traceparent", "content-type", "accept-encoding"]);
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
