// Tests errors for which no channel is to blame, and requests that come back to their gateway.

import { describe, expect, test } from "bun:test";
import { makeConfig, startGatewayHere } from "../../harness/gateway.ts";
import { rawRequest } from "../../harness/raw.ts";
import { openPair } from "../pair.ts";
import { bearer, makeRequest, MESSAGE } from "../world.ts";

describe("failures that do not count against a channel", () => {
  test("P107: a client that leaves before or during the answer is not a failure of the channel", async () => {
    const { a, gateway, view } = openPair({ a: { timeouts: { first_byte: "20s", idle: "20s" } } });
    for (const fault of ["never-answer", "stall"] as const) {
      a.next(fault);
      const count = a.requests.length;
      const ended = gateway.records.length;
      const socket = await Bun.connect({
        hostname: "127.0.0.1",
        port: gateway.port,
        socket: { data: () => {} },
      });
      const body = JSON.stringify({ ...MESSAGE, stream: true });
      socket.write(
        `POST /v1/messages HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: ${bearer("messages")["authorization"]}\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
      );
      const received = await a.received(count);
      // To leave in the middle of an answer, the client waits until a part of it has been sent.
      const least = fault === "stall" ? 1000 : 0;
      while (received.sentBytes() < least) await Bun.sleep(1);
      socket.end();
      await gateway.recorded(ended + 1);
    }
    expect(gateway.records.map(({ outcome }) => outcome)).toEqual(["client_closed", "client_closed"]);
    expect(view("messages-a")).toMatchObject({ errors_hour: 0 });
    expect(view("messages-a").state).not.toBe("unavailable");
  });

  test("P101, P107: a failed count_tokens goes to another channel; failed count_tokens and model lists do not count against a channel", async () => {
    const { a, ask, gateway, view } = openPair();
    a.next("status-500", "status-401", "status-529");
    for (const sent of [1, 2, 3]) {
      const request = { ...makeRequest("messages"), target: "/v1/messages/count_tokens" };
      const outcome = await ask(request);
      expect([outcome.answer.status, ...outcome.sent]).toEqual([200, sent, sent]);
    }
    a.next({ fault: "status-401", when: () => true });
    const list = await rawRequest(gateway.port, { target: "/v1/models", fields: bearer("messages") });
    expect(list.status).toBe(200);
    expect(view("messages-a")).toMatchObject({ state: "unknown", requests_hour: 0, errors_hour: 0 });
  });
});

test("a channel that has failed once, and does not rest, gets several requests at the same time", async () => {
  const { a, b, gateway } = openPair();
  const send = (text: string) =>
    rawRequest(gateway.port, makeRequest("messages", false, { messages: [{ role: "user", content: text }] }));
  a.next("status-500");
  expect((await send("the first")).status).toBe(200);
  expect([a.requests.length, b.requests.length]).toEqual([1, 1]);
  await Promise.all(["one", "two", "three"].map(send));
  expect([a.requests.length, b.requests.length]).toEqual([4, 1]);
});

test("a request that comes back to its gateway through a proxy is refused", async () => {
  let target = "";
  const pass = ({ headers, body }: Request) =>
    fetch(target, {
      method: "POST",
      headers: { ...Object.fromEntries(headers), ...bearer("messages") },
      body,
    });
  const between = Bun.serve({ port: 0, fetch: pass });
  const gateway = startGatewayHere({ config: makeConfig({ url: `http://127.0.0.1:${between.port}` }) });
  target = `http://127.0.0.1:${gateway.port}/v1/messages`;
  const answer = await rawRequest(gateway.port, makeRequest("messages"));
  expect([answer.status, gateway.records.length]).toEqual([502, 2]);
  expect(answer.text).toContain("comes from this gateway itself");
  await gateway.stop();
  await between.stop(true);
});
