// What an upstream's answer says about a credential.

import { afterEach, describe, expect, test } from "bun:test";
import { checkCredential, type CheckResult } from "../../../src/cli/setup/credential-check.ts";
import { checkConfigText } from "../../../src/config/file/load.ts";
import type { Platform } from "../../harness/gateway.ts";

type Answer = (request: Request) => Response | Promise<Response>;
let server: ReturnType<typeof Bun.serve> | null = null;
afterEach(() => void server?.stop(true));

function channelAt(platform: Platform, answer: Answer) {
  server = Bun.serve({ hostname: "127.0.0.1", port: 0, fetch: answer });
  const base = `http://127.0.0.1:${server.port}/base`;
  const text = `channels: { a: { platform: ${platform}, base_url: "${base}", credential: secret-credential } }`;
  const [channel] = checkConfigText(text, "/gateway.yaml", {}).catalog.channels.values();
  if (channel === undefined) throw new Error("no channel");
  return channel;
}

const status =
  (code: number, body = "{}"): Answer =>
  () =>
    new Response(body, { status: code });
const list =
  (text: string): Answer =>
  () =>
    new Response(text);
/** A provider without a list of models, as most Messages endpoints of other providers are. */
const withoutList =
  (code: number): Answer =>
  (request) =>
    new Response("{}", { status: request.method === "GET" ? 404 : code });

describe("a credential", () => {
  const rows: ReadonlyArray<
    readonly [what: string, platform: Platform, answer: Answer, result: CheckResult]
  > = [
    [
      "that lists models",
      "messages",
      list('{"data":[{"id":"a"},{"id":"b"}]}'),
      { kind: "accepted", models: 2 },
    ],
    ["that is refused", "responses", status(401), { kind: "refused", status: 401 }],
    ["that is forbidden", "messages", status(403), { kind: "refused", status: 403 }],
    [
      "of Google that is wrong",
      "content",
      status(400, '{"reason":"API_KEY_INVALID"}'),
      { kind: "refused", status: 400 },
    ],
    ["without a list, accepted", "messages", withoutList(400), { kind: "accepted", models: null }],
    ["without a list, refused", "messages", withoutList(401), { kind: "refused", status: 401 }],
    ["of a server with trouble", "responses", status(500), { kind: "unknown", reason: "it answers 500" }],
    [
      "of a page that is no API",
      "messages",
      list("<html>"),
      { kind: "unknown", reason: expect.stringContaining("address") },
    ],
  ];
  test.each(rows)("%s (%s) is judged by the answer", async (_, platform, answer, result) => {
    const channel = channelAt(platform, answer);
    expect(await checkCredential(channel)).toEqual(result);
  });

  test("costs nothing to check: no request names a model or a prompt", async () => {
    const bodies: string[] = [];
    const channel = channelAt("messages", async (request) => {
      bodies.push(await request.text());
      return new Response("{}", { status: request.method === "GET" ? 404 : 400 });
    });
    await checkCredential(channel);
    expect(bodies).toEqual(["", "{}"]);
  });

  test("a credential that cannot be checked does not appear in the reason", async () => {
    const channel = channelAt("messages", status(200));
    await server?.stop(true);
    const result = await checkCredential(channel);
    expect(result.kind).toBe("unknown");
    expect(JSON.stringify(result)).not.toContain("secret-credential");
  });
});
