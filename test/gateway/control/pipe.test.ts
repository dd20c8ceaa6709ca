// The control path on Windows. Elsewhere a unix socket takes the pipe's place.

import { expect, test } from "bun:test";
import { existsSync, readFileSync } from "node:fs";
import { connect } from "node:net";
import { fetchOverPipe, servePipe } from "../../../src/gateway/control/pipe.ts";
import { makeTempFolder, type TempFolder } from "../../harness/temp.ts";

const WINDOWS = process.platform === "win32";

async function open(answer: (request: Request) => Promise<Response>, folder: TempFolder) {
  const place = folder.join("gateway.sock");
  const pipe = WINDOWS ? servePipe(place, answer) : servePipe(place, answer, folder.join("pipe"));
  while (!existsSync(place)) await Bun.sleep(1);
  return { place, pipe };
}

const NEVER = new AbortController().signal;

test("a request with its query and body goes over a pipe, and its reply comes back", async () => {
  using folder = makeTempFolder();
  const long = "ü".repeat(300_000);
  const answer = async (request: Request): Promise<Response> =>
    Response.json({ url: request.url, body: (await request.text()).length, long }, { status: 201 });
  const { place, pipe } = await open(answer, folder);
  const request = { method: "POST", path: "/channels?a=b", body: long };
  const replies = await Promise.all([1, 2, 3].map(() => fetchOverPipe(place, request, NEVER)));
  for (const reply of replies) {
    expect(reply.status).toBe(201);
    expect(await reply.json()).toEqual({ url: "http://gateway/channels?a=b", body: 300_000, long });
  }
  pipe.stop();
  expect(existsSync(place)).toBe(false);
});

test("what is no request gets a refusal, and an error of the gateway is told", async () => {
  using folder = makeTempFolder();
  const { place, pipe } = await open(() => Promise.reject(new Error("too late")), folder);
  const reply = await fetchOverPipe(place, { method: "GET", path: "/state" }, NEVER);
  expect([reply.status, await reply.json()]).toEqual([500, { error: "too late" }]);
  const text = await new Promise<string>((resolve) => {
    const socket = connect(readFileSync(place, "utf8"), () => socket.write("GET / HTTP/1.1\r\n\r\n"));
    socket.once("data", (chunk) => resolve(String(chunk)));
  });
  expect(JSON.parse(text)).toEqual({ status: 400, body: "{}" });
  pipe.stop();
});

test("a client that gives up, and one whose gateway ends, learn it", async () => {
  using folder = makeTempFolder();
  const never = Promise.withResolvers<Response>();
  const { place, pipe } = await open(() => never.promise, folder);
  const stop = new AbortController();
  const waiting = fetchOverPipe(place, { method: "GET", path: "/state" }, stop.signal);
  stop.abort(new Error("enough"));
  expect(waiting).rejects.toThrow("enough");
  const name = readFileSync(place);
  pipe.stop();
  await Bun.write(place, name);
  expect(fetchOverPipe(place, { method: "GET", path: "/state" }, NEVER)).rejects.toMatchObject({
    code: expect.stringMatching(/^(ENOENT|ECONNREFUSED|FailedToOpenSocket)$/),
  });
});
