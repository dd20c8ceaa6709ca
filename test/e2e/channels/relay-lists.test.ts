// Lists of relays, which differ in the list's path and in the headers that they need; and routing by the lists.

import { afterEach, describe, expect, test } from "bun:test";
import { keyOf, makeConfig, startGatewayHere } from "../../harness/gateway.ts";
import { rawRequest } from "../../harness/raw.ts";
import { bearer } from "../world.ts";

const CREDENTIAL = "credential-of-the-channel";

type Lists = (request: Request) => readonly string[] | null;

const cleanups: (() => void | Promise<void>)[] = [];
afterEach(async () => {
  for (const clean of cleanups.splice(0).toReversed()) await clean();
});

/** An upstream with these lists, by path and headers; null: 404. It answers every other request with its own name. */
function startUpstream(name: string, lists: Lists) {
  const requests: string[] = [];
  const server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch: (request) => {
      const { pathname } = new URL(request.url);
      requests.push(pathname);
      if (request.method !== "GET")
        return Response.json({
          type: "message",
          id: name,
          model: "m",
          usage: { input_tokens: 1, output_tokens: 1 },
        });
      const ids = lists(request);
      if (ids === null) return Response.json({ error: { message: "no such path" } }, { status: 404 });
      return Response.json({ object: "list", data: ids.map((id) => ({ id })) });
    },
  });
  cleanups.push(() => server.stop(true));
  return { url: `http://127.0.0.1:${server.port}`, requests };
}

function open(
  platform: "relay" | "messages",
  channels: Readonly<Record<string, { url: string; models?: string[] }>>,
) {
  const sections = Object.entries(channels).map(([name, { url, models }], index) => [
    name,
    { platform, base_url: url, credential: CREDENTIAL, priority: index + 1, ...(models && { models }) },
  ]);
  const gateway = startGatewayHere({
    config: {
      ...makeConfig({ url: "http://127.0.0.1:9" }),
      channels: Object.fromEntries(sections),
      groups: { g: { platform, multiplier: "1", channels: Object.keys(channels) } },
      keys: [{ name: "k", group: "g", secret: keyOf(platform) }],
    },
  });
  cleanups.push(() => gateway.stop());
  const ask = (target: string) => rawRequest(gateway.port, { target, fields: bearer(platform) });
  const list = async (target: string): Promise<string[]> => {
    const answer = await ask(target);
    expect([target, answer.status]).toEqual([target, 200]);
    const { data, models } = JSON.parse(answer.text);
    return (data ?? models).map(({ id, name }: Record<string, string>) => id ?? name!.replace("models/", ""));
  };
  const send = async (model: string) => {
    const target = platform === "relay" ? "/relay/v1/messages" : "/v1/messages";
    const body = { model, max_tokens: 9, messages: [{ role: "user", content: "Hello" }] };
    const answer = await rawRequest(gateway.port, { target, fields: bearer(platform), body });
    return String(JSON.parse(answer.text).id);
  };
  return { ask, list, send };
}

const pathOf = (request: Request): string => new URL(request.url).pathname;

describe("a relay's list", () => {
  test("is requested without the header of one dialect, which would hide the models of the others", async () => {
    const relay = startUpstream("relay", (request) => {
      if (pathOf(request) !== "/models") return null;
      return request.headers.has("anthropic-version") ? ["claude-a"] : ["claude-a", "gemini-b"];
    });
    const { list } = open("relay", { relay });
    expect(await list("/relay/models")).toEqual(["claude-a", "gemini-b"]);
  });

  test("is put together from both dialects' lists if the relay has none of its own", async () => {
    const relay = startUpstream("relay", (request) => {
      const { headers } = request;
      if (pathOf(request) === "/v1/models")
        return headers.get("x-api-key") === CREDENTIAL && headers.has("anthropic-version")
          ? ["claude-a", "both"]
          : [];
      if (pathOf(request) === "/v1beta/models")
        return headers.get("x-goog-api-key") === CREDENTIAL ? ["gemini-b", "both"] : [];
      return null;
    });
    const { list } = open("relay", { relay });
    expect(await list("/relay/models")).toEqual(["claude-a", "both", "gemini-b"]);
  });

  test("offers content models to content clients", async () => {
    const relay = startUpstream("relay", (request) =>
      pathOf(request) === "/v1beta/models" ? ["gemini-b"] : ["claude-a", "gemini-b"],
    );
    const { list } = open("relay", { relay });
    expect(await list("/relay/v1beta/models")).toEqual(["gemini-b"]);
    expect(await list("/relay/models")).toEqual(["claude-a", "gemini-b"]);
  });

  test("offers all models to content clients if the relay has no list for them", async () => {
    const relay = startUpstream("relay", (request) => (pathOf(request) === "/models" ? ["claude-a"] : null));
    const { list } = open("relay", { relay });
    expect(await list("/relay/v1beta/models")).toEqual(["claude-a"]);
  });
});

describe("a list of which `models` leaves nothing", () => {
  test("falls back to the exact names in `models`", async () => {
    const upstream = startUpstream("a", () => ["other-1"]);
    const { list } = open("messages", { a: { ...upstream, models: ["mine-1", "mine-2", "more-*"] } });
    expect(await list("/v1/models")).toEqual(["mine-1", "mine-2"]);
  });

  test("falls back to the last known list before that", async () => {
    let ids = ["mine-7"];
    const upstream = startUpstream("a", () => ids);
    const { list } = open("messages", { a: { ...upstream, models: ["mine-*", "exact"] } });
    expect(await list("/v1/models")).toEqual(["mine-7"]);
    ids = ["other"];
    expect(await list("/v1/models")).toEqual(["mine-7"]);
  });
});

test("a list of which globs in `models` leave nothing is an error with the reason", async () => {
  const upstream = startUpstream("a", () => ["other-1"]);
  const { ask } = open("messages", { a: { ...upstream, models: ["mine-*"] } });
  const { status, text } = await ask("/v1/models");
  expect([status, JSON.parse(text).error.message]).toEqual([502, expect.stringContaining("leaves nothing")]);
});

test("a listed model goes to a channel that lists it, whatever the channel's priority", async () => {
  const first = startUpstream("first", () => ["m-1", "shared"]);
  const second = startUpstream("second", () => ["m-2", "shared"]);
  const { list, send } = open("messages", { first, second });
  expect(await list("/v1/models")).toEqual(["m-1", "shared", "m-2"]);
  expect(await Promise.all(["m-1", "m-2", "shared", "in-no-list"].map(send))).toEqual([
    "first",
    "second",
    "first",
    "first",
  ]);
});
