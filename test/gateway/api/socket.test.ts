// Tests the private socket, and the port of this machine that takes its place on Windows.

import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { fetchFrom, serveOn } from "../../../src/gateway/api/socket.ts";
import { makeTempFolder } from "../../harness/temp.ts";

const NEVER = new AbortController().signal;

test("on Windows, requests go to the port in the file `gateway.sock`, and fail if another program has this port", async () => {
  using folder = makeTempFolder();
  const place = folder.join("gateway.sock");
  const long = "ü".repeat(300_000);
  const answer = async (request: Request): Promise<Response> =>
    Response.json({ url: new URL(request.url).search, body: (await request.text()).length }, { status: 201 });
  const server = serveOn(place, answer, false);
  const ask = () => fetchFrom(place, "/channels?a=b", { method: "POST", body: long, signal: NEVER }, false);
  const reply = await ask();
  expect([reply.status, await reply.json()]).toEqual([201, { url: "?a=b", body: 300_000 }]);
  const { port } = JSON.parse(readFileSync(place, "utf8"));
  expect((await fetch(`http://127.0.0.1:${port}/reports/state`)).status).toBe(403);
  await server.stop(true);
  // Another program has the port now.
  using other = Bun.serve({ hostname: "127.0.0.1", port, fetch: () => new Response("{}") });
  expect(other.port).toBe(port);
  expect(ask()).rejects.toMatchObject({ code: "ECONNREFUSED" });
});
