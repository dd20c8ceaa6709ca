// What web pages may do: nothing, unless the config says so. And the WebSocket
// that Codex tries first.

import { describe, expect, test } from "bun:test";
import type { RequestLines } from "../../harness/raw.ts";
import { bearer, inWorld, makeRequest } from "../world.ts";

describe("a Host header that is not the gateway's", () => {
  test.each([
    "evil.example",
    "evil.example:80",
    "127.0.0.1.evil.example",
    "localhost.evil.example",
    "[::2]",
    "10.0.0.1",
    "",
  ])("%s is refused on every path, before any key is looked at", async (host) => {
    await inWorld(async (world) => {
      for (const request of [
        makeRequest("messages"),
        { target: "/" },
        { target: "/metrics" },
        { target: "/v1/models" },
      ]) {
        const answer = await world.ask({ ...request, fields: { ...request.fields, host } });
        expect([request.target, answer.status]).toEqual([request.target, 403]);
        expect(answer.text).toContain("allowed_hosts");
      }
      expect(world.upstream.requests).toHaveLength(0);
    });
  });

  test.each([
    "localhost",
    "LocalHost:4141",
    "127.0.0.1:1",
    "127.9.9.9",
    "[::1]",
    "[::1]:80",
    "app.localhost",
  ])("%s is one of its own", async (host) => {
    await inWorld(async (world) => {
      const request = makeRequest("messages");
      expect((await world.ask({ ...request, fields: { ...request.fields, host } })).status).toBe(200);
    });
  });

  test("is accepted if the config allows it", async () => {
    await inWorld(
      async (world) => {
        const hello = (host: string) => world.ask({ target: "/", fields: { host } });
        expect((await hello("gateway.lan:4141")).status).toBe(200);
        expect((await hello("other.lan")).status).toBe(403);
      },
      () => ({ allowed_hosts: ["gateway.lan"] }),
    );
  });
});

const PAGE = "https://page.example";
const PREFLIGHT = {
  method: "OPTIONS",
  target: "/v1/messages",
  fields: {
    origin: PAGE,
    "access-control-request-method": "POST",
    "access-control-request-headers": "x-api-key, content-type",
  },
};

describe("a page in a browser", () => {
  test("gets no permission by default", async () => {
    await inWorld(async (world) => {
      const preflight = await world.ask(PREFLIGHT);
      expect(preflight.status).toBe(403);
      expect(preflight.field("x-request-id")).toStartWith("req_");
      expect(JSON.parse(preflight.text).error.message).toContain("add the origin to cors_origins");
      expect(world.gateway.records.at(-1)).toMatchObject({ status: 403, outcome: "refused" });
      const request = makeRequest("messages");
      const answer = await world.ask({ ...request, fields: { ...request.fields, origin: PAGE } });
      expect(answer.fields.filter(([name]) => name.startsWith("access-control"))).toEqual([]);
    });
  });

  test.each([[PAGE], ["*"]])("gets permission if the config names its origin: %s", async (allowed) => {
    await inWorld(
      async (world) => {
        const preflight = await world.ask({
          ...PREFLIGHT,
          fields: { ...PREFLIGHT.fields, connection: "close" },
        });
        expect(preflight.status).toBe(204);
        expect(preflight.field("x-request-id")).toStartWith("req_");
        expect(preflight.field("access-control-allow-origin")).toBe(PAGE);
        expect(preflight.field("access-control-allow-headers")).toBe("x-api-key, content-type");
        expect(preflight.field("access-control-allow-methods")).toContain("POST");
        const asked: RequestLines[] = [
          makeRequest("messages"),
          makeRequest("messages", true),
          makeRequest("chat", true),
          { target: "/v1/models", fields: bearer("messages") },
          { target: "/v1/messages", body: {} },
          { target: "/nowhere" },
          { target: "/healthz" },
        ];
        for (const request of asked) {
          const answer = await world.ask({ ...request, fields: { ...request.fields, origin: PAGE } });
          expect([request.target, answer.field("access-control-allow-origin")]).toEqual([
            request.target,
            PAGE,
          ]);
          expect(answer.field("vary")?.toLowerCase()).toContain("origin");
        }
        const other = { ...PREFLIGHT, fields: { ...PREFLIGHT.fields, origin: "https://other.example" } };
        const answer = await world.ask({ ...other, fields: { ...other.fields, connection: "close" } });
        expect(answer.status).toBe(allowed === "*" ? 204 : 403);
      },
      () => ({ cors_origins: [allowed] }),
    );
  });
});
