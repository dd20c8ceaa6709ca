// Groups with `other_paths`: what goes upstream as it is, what its line says, and what is refused.

import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { gzipSync } from "node:zlib";
import type { Answer } from "../../harness/model/answers/answer.ts";
import { findFault } from "../../../src/billing/ledger/check.ts";
import { CREDENTIAL } from "../../harness/gateway.ts";
import { makeGate } from "../../harness/upstreams/demo-upstream.ts";
import { openWorld, type World } from "../world.ts";

let world: World;
const key = (name: string): Record<string, string> => ({
  authorization: `Bearer sk-test-${name}-0123456789`,
});
const PATHS = ["/v1/new", "/v1/events", "/v1beta/cachedContents"];

beforeAll(() => {
  const channel = (url: string, platform: string, more: object = {}) => ({
    platform,
    base_url: url,
    credential: CREDENTIAL,
    ...more,
  });
  const keys = ["open", "named", "limited", "listed", "closed", "second", "google", "rate", "even"];
  world = openWorld((url) => ({
    channels: {
      main: channel(url, "messages"),
      spare: channel(url, "messages", { priority: 2 }),
      listed: channel(url, "messages", { models: ["claude-*"] }),
      google: channel(url, "content"),
      left: channel(url, "messages"),
      right: channel(url, "messages"),
    },
    groups: {
      open: { platform: "messages", channels: ["main", "spare"], other_paths: PATHS },
      named: { platform: "messages", channels: ["main"], other_paths: ["/v1/files"] },
      limited: {
        platform: "messages",
        channels: ["main"],
        other_paths: PATHS,
        limits: { usd_per_session: "5" },
      },
      listed: { platform: "messages", channels: ["listed"], other_paths: PATHS },
      closed: { platform: "messages", channels: ["main"] },
      google: { platform: "content", channels: ["google"], other_paths: PATHS },
      even: { platform: "messages", channels: ["left", "right"], other_paths: PATHS },
    },
    keys: keys.map((name) => ({
      name,
      group: ["second", "rate"].includes(name) ? "open" : name,
      secret: `sk-test-${name}-0123456789`,
      ...(name === "second" && { limits: { usd_per_day: "1" } }),
      ...(name === "rate" && { limits: { requests_per_minute: 1 } }),
    })),
  }));
});
afterAll(() => world.stop());

function answer(body: string | Buffer, status = 200, type = "application/json"): Answer {
  return {
    family: "messages",
    status,
    fields: [["content-type", type]],
    pieces: [Buffer.from(body)],
    framing: "chunked",
  };
}

describe("what goes upstream", () => {
  test("the body and the fields as they came, with the channel's credential in place of the key", async () => {
    world.upstream.next({ answer: answer('{"usage":{"input_tokens":9,"output_tokens":9}}') });
    const zipped = gzipSync("--boundary\r\n\x00 this is no JSON");
    const fields = {
      ...key("open"),
      "content-type": "multipart/form-data; boundary=boundary",
      "content-encoding": "gzip",
      "anthropic-beta": "new-thing-2027-01-01",
    };
    const {
      answer: got,
      received,
      lines,
      record,
    } = await world.trace({
      method: "POST",
      target: "/v1/new/Thing?depth=2&key=sk-test-open-0123456789",
      fields,
      body: zipped,
    });
    expect([got.status, got.text]).toEqual([200, '{"usage":{"input_tokens":9,"output_tokens":9}}']);
    expect(received!.target).toBe("/v1/new/Thing?depth=2");
    expect(Buffer.from(received!.body).equals(zipped)).toBe(true);
    const sent = Object.fromEntries(received!.fields);
    expect(sent).toMatchObject({
      "x-api-key": CREDENTIAL,
      "content-encoding": "gzip",
      "anthropic-beta": "new-thing-2027-01-01",
    });
    expect(sent["authorization"]).toBeUndefined();
    expect(lines).toMatchObject([
      {
        endpoint: "other",
        path: "/v1/new/Thing",
        basis: "unknown",
        official_usd: null,
        charge_usd: null,
        usage: {},
        channel: "main",
        outcome: "complete",
      },
    ]);
    expect(findFault(lines[0]!)).toBeNull();
    expect(record).toMatchObject({ endpoint: "other", usage: {}, chargeUsd: null });
  });

  test("GET, with an event stream whose events nobody knows", async () => {
    const events = "event: whatever\ndata: 1\n\n";
    world.upstream.next({ answer: answer(events, 200, "text/event-stream") });
    const { answer: got, lines } = await world.trace({
      method: "GET",
      target: "/v1/events",
      fields: key("open"),
    });
    expect([got.status, got.text, got.complete]).toEqual([200, events, true]);
    expect(lines).toMatchObject([{ basis: "unknown", outcome: "complete" }]);
  });

  test("a content group's path has the version of its platform", async () => {
    world.upstream.next({ answer: answer("{}") });
    const { received } = await world.trace({
      target: "/v1beta/cachedContents",
      fields: key("google"),
      body: {},
    });
    expect([received!.target, Object.fromEntries(received!.fields)["x-goog-api-key"]]).toEqual([
      "/v1beta/cachedContents",
      CREDENTIAL,
    ]);
  });

  test("to the channel that served the session's last response", async () => {
    const model = "claude-haiku-4-5";
    for (let session = 0; session < 10; session += 1) {
      const fields = { ...key("even"), "x-claude-code-session-id": `s-${session}` };
      const body = { model, max_tokens: 9, messages: [{ role: "user", content: "Hello" }] };
      const { lines } = await world.trace({ target: "/v1/messages", fields, body });
      world.upstream.next({ answer: answer("{}") });
      const other = await world.trace({ target: "/v1/new", fields, body: {} });
      expect(other.lines.map(({ channel }) => channel)).toEqual(lines.map(({ channel }) => channel));
    }
  });

  test("an error of it says nothing about the channel", async () => {
    for (let count = 0; count < 4; count += 1) {
      world.upstream.next({ answer: answer("{}", 500) }, { answer: answer("{}", 500) });
      const { answer: got } = await world.trace({ target: "/v1/new", fields: key("open"), body: {} });
      expect(got.status).toBe(500);
    }
    const { gateway } = world.gateway.running;
    const views = gateway.channels.view(gateway.catalog, Date.now());
    expect(views.find(({ name }) => name === "main")).toMatchObject({ state: "unknown", errors_hour: 0 });
  });

  test("a list names what is forwarded", async () => {
    world.upstream.next({ answer: answer('{"id":"file_1"}') });
    const { answer: got, lines } = await world.trace({ target: "/v1/files", fields: key("named"), body: {} });
    expect([got.status, got.text, lines.length]).toEqual([200, '{"id":"file_1"}', 1]);
  });
});

describe("what is refused", () => {
  test.each([
    ["without the setting", "/v1/new", "closed"],
    ["a path that no list names", "/v1/new", "named"],
    ["files, which its list does not name", "/v1/files", "open"],
    ["another spelling of a listed path", "/v1/Messages", "open"],
    ["an escaped one", "/v1/%6dessages", "open"],
    ["a path of another platform's version", "/v1beta/new", "open"],
    ["with no key that is known", "/v1/new", "nobody"],
  ])("a 404, as ever: %s", async (_, target, name) => {
    const before = world.upstream.requests.length;
    const { answer: got, lines } = await world.trace({ target, fields: key(name), body: {} });
    expect([got.status, lines.length, world.upstream.requests.length - before]).toEqual([404, 0, 0]);
    expect(got.text).toContain("Unknown path");
  });

  test.each([
    ["its group has a limit in USD", "limited"],
    ["the key has one", "second"],
    ["a channel has a list of models", "listed"],
  ])("a 403, because nothing could be counted: %s", async (_, name) => {
    const before = world.upstream.requests.length;
    const { answer: got } = await world.trace({ target: "/v1/new", fields: key(name), body: {} });
    expect([got.status, world.upstream.requests.length - before]).toEqual([403, 0]);
    expect(got.text).toContain("nothing could be counted");
  });

  test("limits on the number of requests count it", async () => {
    world.upstream.next({ answer: answer("{}") });
    const ask = () => world.trace({ target: "/v1/new", fields: key("rate"), body: {} });
    expect([(await ask()).answer.status, (await ask()).answer.status]).toEqual([200, 429]);
  });

  test.each(["sk-test-open-0123456789", CREDENTIAL])("a path that holds a secret: %s", async (secret) => {
    const {
      answer: got,
      lines,
      record,
    } = await world.trace({
      target: `/v1/new/${secret}`,
      fields: key("open"),
      body: {},
    });
    expect([got.status, lines.length]).toEqual([400, 0]);
    expect(JSON.stringify(record)).not.toContain(secret);
  });
});

test("a client that leaves while it runs gets its line all the same", async () => {
  const gate = makeGate();
  world.upstream.next({ answer: answer("{}"), gates: { 0: gate } });
  const { client, received, over } = await world.begin({
    target: "/v1/new",
    fields: key("open"),
    body: {},
  });
  await received;
  await gate.reached;
  client.reset();
  const { lines } = await over();
  expect(lines).toMatchObject([{ endpoint: "other", basis: "unknown", outcome: "client_closed" }]);
});
