// Which header fields are forwarded, as docs/contract.md lists them.

import { describe, expect, test } from "bun:test";
import { KnownSecrets } from "../../../src/gateway/intake/known-secrets.ts";
import { requestFields, responseFields } from "../../../src/gateway/upstream/headers.ts";
import { type Field, Fields } from "../../../src/lib/http/fields.ts";

const NO_SECRETS = new KnownSecrets({ channels: new Map(), keysBySha256: new Map() });
const OWN: ReadonlySet<string> = new Set(["accept-encoding", "x-content-type-options"]);
const names = (fields: readonly Field[]) => fields.map(([name]) => name).filter((name) => !OWN.has(name));
const toUpstream = (fields: readonly Field[], keepEncoding: boolean) => [
  ...requestFields(Fields.of(fields), keepEncoding, NO_SECRETS),
];
const toClient = (fields: readonly Field[]) => [...responseFields(Fields.of(fields))];
const sent = (name: string, value = "x") => names(toUpstream([[name, value]], false));
const received = (name: string) => names(toClient([[name, "x"]]));

describe("a request header is forwarded, known or not", () => {
  test.each([
    "accept",
    "accept-language",
    "anthropic-beta",
    "anthropic-something-new",
    "anthropic-version",
    "content-type",
    "forwarded",
    "idempotency-key",
    "openai-beta",
    "originator",
    "session_id",
    "traceparent",
    "user-agent",
    "version",
    "x-claude-code-session-id",
    "x-codex-turn-metadata",
    "x-forwarded-for",
    "x-gemini-api-privileged-user-id",
    "x-goog-api-client",
    "x-opencode-session",
    "x-request-id",
    "x-stainless-lang",
    "x-unheard-of",
  ])("%s", (name) => expect(sent(name)).toEqual([name]));
});

describe("a request header stays here if it concerns one hop, a key, an account or a browser", () => {
  test.each([
    "accept-encoding",
    "anthropic-organization-id",
    "anthropic-workspace-id",
    "api-key",
    "authorization",
    "chatgpt-account-id",
    "connection",
    "content-encoding",
    "content-length",
    "cookie",
    "expect",
    "host",
    "http2-settings",
    "keep-alive",
    "openai-organization",
    "openai-project",
    "origin",
    "proxy-authorization",
    "proxy-connection",
    "referer",
    "sec-ch-ua",
    "sec-fetch-mode",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "x-api-key",
    "x-codex-authorization",
    "x-gateway-charge",
    "x-gateway-hop",
    "x-gateway-key",
    "x-goog-api-key",
    "x-goog-iam-authorization-token",
    "x-goog-user-project",
    "x-openai-organization",
    "x-other-api-key",
  ])("%s", (name) => expect(sent(name)).toEqual([]));

  test("or if its value looks like a client's key", () => {
    expect(sent("x-token", "sk-0123456789abcdef")).toEqual([]);
    expect(sent("x-token", "Bearer sk-0123456789abcdef")).toEqual([]);
    expect(sent("x-task", "task-0123456789")).toEqual(["x-task"]);
  });
});

test("the body's content-encoding is forwarded only with the original body", () => {
  expect(names(toUpstream([["content-encoding", "gzip"]], true))).toEqual(["content-encoding"]);
  expect(sent("content-encoding")).toEqual([]);
});

test("fields that `connection` names are not forwarded, whichever they are", () => {
  const request: Field[] = [
    ["connection", "Close, Anthropic-Beta"],
    ["anthropic-beta", "a"],
    ["connection", "x-codex-window-id"],
    ["x-codex-window-id", "b"],
    ["anthropic-version", "c"],
  ];
  expect(names(toUpstream(request, false))).toEqual(["anthropic-version"]);
  const response: Field[] = [
    ["connection", "retry-after"],
    ["retry-after", "1"],
    ["request-id", "r"],
  ];
  expect(names(toClient(response))).toEqual(["request-id"]);
});

test("order, repeats and values stay unchanged, and identity encoding is requested", () => {
  const fields: Field[] = [
    ["anthropic-beta", "b,a"],
    ["accept-encoding", "gzip, br"],
    ["anthropic-beta", " c "],
    ["accept", ""],
  ];
  expect(toUpstream(fields, false)).toEqual([
    ["anthropic-beta", "b,a"],
    ["anthropic-beta", " c "],
    ["accept", ""],
    ["accept-encoding", "identity"],
  ]);
});

describe("a response header is forwarded, known or not", () => {
  test.each([
    "age",
    "anthropic-ratelimit-requests-limit",
    "cache-control",
    "cf-cache-status",
    "cf-ray",
    "content-disposition",
    "content-encoding",
    "content-type",
    "date",
    "deprecation",
    "etag",
    "link",
    "location",
    "openai-processing-ms",
    "request-id",
    "retry-after",
    "retry-after-ms",
    "server",
    "server-timing",
    "sunset",
    "vary",
    "via",
    "warning",
    "www-authenticate",
    "x-codex-primary-used-percent",
    "x-envoy-upstream-service-time",
    "x-gemini-service-tier",
    "x-ratelimit-remaining-tokens",
    "x-should-retry",
    "x-unheard-of",
  ])("%s", (name) => expect(received(name)).toEqual([name]));

  test("its request id under another name, because x-request-id is the gateway's own", () => {
    expect(names(toClient([["x-request-id", "theirs"]]))).toEqual(["x-upstream-request-id"]);
  });

  test("with x-content-type-options: nosniff, once", () => {
    expect(toClient([["x-content-type-options", "other"]])).toEqual([["x-content-type-options", "nosniff"]]);
  });
});

describe("a response header stays here if it concerns one hop, the channel's account or this origin", () => {
  test.each([
    "access-control-allow-origin",
    "access-control-expose-headers",
    "alt-svc",
    "anthropic-organization-id",
    "clear-site-data",
    "connection",
    "content-length",
    "content-security-policy",
    "content-security-policy-report-only",
    "cross-origin-embedder-policy",
    "cross-origin-opener-policy",
    "cross-origin-resource-policy",
    "keep-alive",
    "nel",
    "openai-organization",
    "openai-project",
    "proxy-authenticate",
    "refresh",
    "report-to",
    "reporting-endpoints",
    "service-worker-allowed",
    "set-cookie",
    "strict-transport-security",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "x-frame-options",
    "x-gateway-charge",
  ])("%s", (name) => expect(received(name)).toEqual([]));
});
