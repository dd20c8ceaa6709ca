// The table of failed attempts, row by row: the cause, and what the client gets.

import { describe, expect, test } from "bun:test";
import {
  blame,
  blameBreaks,
  blamesChannel,
  type Cause,
  causeOf,
  describeBreak,
  describeEarlyEnd,
  describeFailure,
  explainFailure,
  isShortage,
  judgeRefusal,
  mayBlameChannel,
  nameFailure,
  readFailure,
  type StatusFailure,
  toRetryAfter,
} from "../../../src/gateway/upstream/failure-rules.ts";
import { messages } from "../../../src/dialects/formats/messages.ts";
import { Fields } from "../../../src/lib/http/fields.ts";
import { type FaultKind, UpstreamFault, UpstreamResponse } from "../../../src/lib/http/upstream.ts";

const saying = (message: string): string => JSON.stringify({ error: { message } });

function refuse(status: number, text = saying("No.")): StatusFailure {
  const refused = judgeRefusal("main", status, text, messages);
  if (refused === null) throw new Error(`${status} is the request's fault`);
  return refused;
}

describe("a status that blames the channel", () => {
  test.each<[number, Cause, number, string]>([
    [300, "broken", 502, "responds with a redirect, which the gateway does not follow (check its base_url)"],
    [399, "broken", 502, "responds with a redirect, which the gateway does not follow (check its base_url)"],
    [401, "credential", 403, "refused the gateway's credential"],
    [402, "credit", 502, "says that the account is out of credit"],
    [407, "unreachable", 502, "could not be reached by its proxy"],
    [408, "timeout", 504, "timed out"],
    [429, "rate", 503, "is rate limited"],
    [500, "server", 502, "failed"],
    [502, "server", 502, "failed"],
    [503, "overload", 503, "is unavailable"],
    [504, "timeout", 504, "timed out"],
    [529, "overload", 529, "is overloaded"],
    [599, "server", 502, "failed"],
  ])("%d is of cause %s, and a %d to the client: the channel %s", (status, cause, shown, because) => {
    expect([blamesChannel(status), mayBlameChannel(status)]).toEqual([true, true]);
    const failure = refuse(status);
    const rest = { message: "No.", waitMs: null, response: null };
    expect(failure).toEqual({ kind: "status", channel: "main", status, cause, ...rest });
    expect([causeOf(failure), nameFailure(failure)]).toEqual([cause, because]);
    const error = describeFailure(failure);
    expect(error.status).toBe(shown);
    expect(error.message).toStartWith(`The channel "main" ${because}: ${status} No.`);
    expect(error.retryAfterSeconds).toBe(shown === 503 ? 5 : null);
    // An error inside a stream gives the same.
    expect(blame("main", status, "No.")).toEqual(failure);
  });

  test.each([200, 299, 400, 403, 404, 409, 413, 418, 422, 499])("%d is about the request", (status) => {
    const bodyDecides = status === 400 || status === 403;
    expect([blamesChannel(status), mayBlameChannel(status)]).toEqual([false, bodyDecides]);
    expect(judgeRefusal("main", status, saying("No."), messages)).toBeNull();
  });
});

describe("error codes that say more than their status", () => {
  test.each<[number, string, Cause]>([
    [400, '{"error":{"message":"No.","details":[{"reason":"API_KEY_INVALID"}]}}', "credential"],
    [429, '{"error":{"message":"No.","code":"insufficient_quota"}}', "credit"],
    [429, '{"error":{"message":"No.","code":"billing_hard_limit_reached"}}', "credit"],
    [400, saying("Your credit balance is too low to go on."), "credit"],
    [403, '{"error":{"message":"No.","code":"invalid_api_key"}}', "credential"],
    [403, '{"error":{"message":"No.","details":[{"reason":"SERVICE_DISABLED"}]}}', "credential"],
    [403, saying("OAuth token has been revoked."), "credential"],
    [403, saying("Method doesn't allow unregistered callers."), "credential"],
    [403, saying("Your API key was reported as leaked. Please use another API key."), "credential"],
  ])("a %d that says %s is of cause %s", (status, text, cause) => {
    const failure = refuse(status, text);
    expect([failure.cause, causeOf(failure)]).toEqual([cause, cause]);
    expect(describeFailure(failure).status).toBe(cause === "credential" ? 403 : 502);
  });

  test("a 5xx stays a server failure, whatever its body quotes", () => {
    for (const status of [500, 503]) {
      const failure = refuse(status, '{"error":{"message":"No.","code":"insufficient_quota"}}');
      expect(["server", "overload"]).toContain(failure.cause);
    }
  });

  test.each([
    "Your API key does not have permission to use the specified resource.",
    "Project `proj_1` does not have access to model `m`.",
    "Your organization must be verified to use the model `m`.",
    "This beta is not available to your account.",
  ])("a 403 about the request stays one: %s", (text) => {
    expect(judgeRefusal("main", 403, saying(text), messages)).toBeNull();
  });

  test("a quoted prompt decides nothing, because its quotes are escaped", () => {
    expect(
      judgeRefusal("main", 400, saying('You wrote "API_KEY_INVALID" and "insufficient_quota".'), messages),
    ).toBeNull();
  });
});

describe("an upstream's message", () => {
  test.each([
    ["of an object", saying("No."), "No."],
    ["of a text", '{"error":"No."}', "No."],
    ["of a list", `[${saying("No.")}]`, "No."],
    ["of a page", "<html>No.</html>", ""],
    ["of nothing", "", ""],
    ["of another shape", '{"error":{"message":5}}', ""],
    ["of an empty list", "[]", ""],
    ["of several lines", saying(" No.\r\nwarning: faked\u2028"), "No. warning: faked"],
    ["without end", saying("x".repeat(301)), "x".repeat(300)],
  ])("%s are in the message", (_, text, message) => {
    expect(refuse(500, text).message).toBe(message);
    expect(explainFailure(refuse(500, text))).toBe(`failed: ${`500 ${message}`.trim()}`);
  });

  test("from a stream is shortened too", () => {
    expect(blame("main", 500, "x".repeat(301)).message).toHaveLength(300);
  });
});

describe("a fault of the connection", () => {
  test.each<[FaultKind, Cause, number, string]>([
    ["connect", "unreachable", 502, "could not be reached"],
    ["connect_timeout", "unreachable", 504, "did not accept a connection in time"],
    ["shortage", "unreachable", 503, "was not called"],
    ["tls", "unreachable", 502, "could not be verified (TLS)"],
    ["first_byte_timeout", "timeout", 504, "did not respond in time"],
    ["idle_timeout", "timeout", 504, "stopped sending"],
    ["reset", "broken", 502, "closed the connection without a response"],
    ["cut", "broken", 502, "broke off its response"],
    ["malformed", "broken", 502, "sent something that is not HTTP"],
    ["withdrawn", "broken", 499, "was abandoned by the client"],
    ["cancelled", "broken", 499, "was abandoned by the client"],
  ])("%s is of cause %s, and a %d: the channel %s", (kind, cause, status, because) => {
    const fault = new UpstreamFault(kind, "in its words", false);
    const failure = { kind: "fault", channel: "main", fault } as const;
    expect([causeOf(failure), nameFailure(failure)]).toEqual([cause, because]);
    const { status: shown, message, retryAfterSeconds } = describeFailure(failure);
    expect([shown, message, retryAfterSeconds]).toEqual([
      status,
      `The channel "main" ${because}: in its words`,
      status === 503 ? 5 : null,
    ]);
    expect(describeBreak("main", fault).message).toBe(message);
    expect([isShortage(failure), isShortage(refuse(503))]).toEqual([kind === "shortage", false]);
  });

  test("responses that broke off several times in a row are reported as such", () => {
    expect(describeFailure(blameBreaks("main"))).toMatchObject({
      code: "upstream_failed",
      message: 'The channel "main" broke off its response: its last responses were incomplete',
    });
    expect(describeEarlyEnd("main")).toMatchObject({ code: "upstream_failed" });
  });
});

describe("when the client may retry", () => {
  test.each([
    [0, 1],
    [1000, 1],
    [1001, 2],
    [60_000, 60],
    [3_600_000, 60],
  ])("after %d ms is sent as %d s, and never so long that a client would sleep for it", (wait, seconds) => {
    expect(toRetryAfter(wait)).toBe(seconds);
    for (const status of [429, 500])
      expect(describeFailure({ ...refuse(status), waitMs: wait }).retryAfterSeconds).toBe(seconds);
  });

  test("is read from the failed response", () => {
    const fields = Fields.of([["retry-after", "30"]]);
    const read = (status: number) =>
      readFailure("main", new UpstreamResponse(status, fields, null), Buffer.from(saying("Slow.")), {
        dialect: messages,
        now: 0,
      });
    expect(read(429)).toMatchObject({ cause: "rate", message: "Slow.", waitMs: 30_000 });
    expect(read(404)).toBeNull();
  });
});
