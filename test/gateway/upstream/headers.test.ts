import { describe, expect, test } from "bun:test";
import { requestFields, responseFields } from "../../../src/gateway/upstream/headers.ts";
import type { Field } from "../../../src/lib/http1/types.ts";

const OUTGOING = { vendor: "goog", keepEncoding: false };
const names = (fields: readonly Field[]) => fields.map(([name]) => name);
const sent = (name: string, outgoing = OUTGOING) =>
  names(requestFields([[name, "x"]], outgoing)).filter((other) => other !== "accept-encoding");
const told = (name: string) => names(responseFields([[name, "x"]]));

describe("what a client says goes upstream", () => {
  // Every field that the clients of ../shared/reference/clients.md were seen to send and an upstream reads.
  test.each([
    "accept",
    "content-type",
    "user-agent",
    "x-app",
    "anthropic-version",
    "anthropic-beta",
    "anthropic-dangerous-direct-browser-access",
    "x-claude-code-session-id",
    "x-stainless-lang",
    "x-stainless-timeout",
    "x-stainless-helper-method",
    "x-stainless-something-new",
    "originator",
    "session-id",
    "session_id",
    "thread-id",
    "x-client-request-id",
    "x-codex-window-id",
    "x-codex-turn-metadata",
    "x-codex-beta-features",
    "x-codex-routing-hint",
    "version",
    "openai-beta",
    "x-goog-api-client",
    "x-gemini-api-privileged-user-id",
    "x-session-affinity",
    "x-session-id",
    "idempotency-key",
    "traceparent",
    "anthropic-something-new",
  ])("%s", (name) => expect(sent(name)).toEqual([name]));
});

describe("what opens an account, names it or concerns one hop stays here", () => {
  test.each([
    "authorization",
    "x-api-key",
    "api-key",
    "x-goog-api-key",
    "x-other-api-key",
    "x-stainless-api-key",
    "proxy-authorization",
    "cookie",
    "host",
    "content-length",
    "transfer-encoding",
    "connection",
    "keep-alive",
    "te",
    "trailer",
    "upgrade",
    "expect",
    "forwarded",
    "x-forwarded-for",
    "x-forwarded-host",
    "x-real-ip",
    "via",
    "origin",
    "referer",
    "sec-fetch-mode",
    "sec-ch-ua",
    "openai-organization",
    "openai-project",
    "x-openai-organization",
    "anthropic-organization-id",
    "anthropic-workspace-id",
    "chatgpt-account-id",
    "x-goog-user-project",
    "x-goog-iam-authorization-token",
    "x-gateway-charge",
    "x-codex-authorization",
    "accept-encoding",
    "x-unheard-of",
    "content-encoding",
    "http2-settings",
    "x-request-id",
  ])("%s", (name) => expect(sent(name)).toEqual([]));
});

test("the vendor word decides what the content platform's clients are called", () => {
  const acme = { vendor: "acme", keepEncoding: false };
  expect(sent("x-acme-api-client", acme)).toEqual(["x-acme-api-client"]);
  expect(sent("x-goog-api-client", acme)).toEqual([]);
  expect(sent("x-acme-api-key", acme)).toEqual([]);
  expect(sent("x-stainless-api-key", { ...acme, vendor: "stainless" })).toEqual([]);
});

test("a body's coding goes along only when the body goes as it came", () => {
  expect(sent("content-encoding", { vendor: "goog", keepEncoding: true })).toEqual(["content-encoding"]);
  expect(sent("content-encoding")).toEqual([]);
});

test("fields that Connection names go no further, whichever they are", () => {
  const fields: Field[] = [
    ["connection", "Close, Anthropic-Beta"],
    ["anthropic-beta", "a"],
    ["connection", "x-codex-window-id"],
    ["x-codex-window-id", "b"],
    ["anthropic-version", "c"],
  ];
  expect(requestFields(fields, OUTGOING)).toEqual([
    ["anthropic-version", "c"],
    ["accept-encoding", "identity"],
  ]);
  expect(
    responseFields([
      ["connection", "retry-after"],
      ["retry-after", "1"],
      ["request-id", "r"],
    ]),
  ).toEqual([["request-id", "r"]]);
});

test("order, repeats and values stay as they were, and the coding asked for is none", () => {
  const fields: Field[] = [
    ["anthropic-beta", "b,a"],
    ["accept-encoding", "gzip, br"],
    ["anthropic-beta", " c "],
    ["accept", ""],
  ];
  expect(requestFields(fields, OUTGOING)).toEqual([
    ["anthropic-beta", "b,a"],
    ["anthropic-beta", " c "],
    ["accept", ""],
    ["accept-encoding", "identity"],
  ]);
});

describe("what an upstream says comes back", () => {
  test.each([
    "content-type",
    "cache-control",
    "retry-after",
    "retry-after-ms",
    "request-id",
    "x-should-retry",
    "server-timing",
    "anthropic-ratelimit-requests-limit",
    "anthropic-ratelimit-output-tokens-reset",
    "x-ratelimit-remaining-tokens",
    "x-ratelimit-reset-requests",
    "openai-processing-ms",
    "openai-version",
    "openai-model",
    "x-gemini-service-tier",
    "x-codex-primary-used-percent",
    "content-encoding",
    "vary",
  ])("%s", (name) => expect(told(name)).toEqual([name]));

  test("its request id under another name, since ours is the gateway's", () => {
    expect(responseFields([["x-request-id", "theirs"]])).toEqual([["x-upstream-request-id", "theirs"]]);
  });
});

describe("what an upstream says of accounts, hops and itself does not", () => {
  test.each([
    "set-cookie",
    "cf-ray",
    "cf-cache-status",
    "anthropic-organization-id",
    "openai-organization",
    "openai-project",
    "content-length",
    "transfer-encoding",
    "connection",
    "keep-alive",
    "trailer",
    "upgrade",
    "alt-svc",
    "server",
    "via",
    "www-authenticate",
    "proxy-authenticate",
    "location",
    "strict-transport-security",
    "report-to",
    "nel",
    "access-control-allow-origin",
    "x-api-key",
    "authorization",
    "x-gateway-charge",
    "x-goog-api-key",
    "date",
  ])("%s", (name) => expect(told(name)).toEqual([]));

  test("nor a coding that the gateway has undone", () => {
    expect(responseFields([["content-encoding", "gzip"]], false)).toEqual([]);
  });
});
