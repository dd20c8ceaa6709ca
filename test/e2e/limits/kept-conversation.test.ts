// A loop in a conversation that the upstream keeps (`previous_response_id`) is refused at its Nth repetition, over HTTP and
// over a WebSocket.

import { describe, expect, onTestFinished, test } from "bun:test";
import { CREDENTIAL, type InsideGateway, keyOf, startGatewayHere } from "../../harness/gateway.ts";
import { rawRequest, readEvents } from "../../harness/raw.ts";
import { openSocket, type SocketClient } from "../../harness/web-socket.ts";

type Value = Record<string, unknown>;

interface Upstream {
  readonly url: string;
  /** How many responses the upstream has made. */
  readonly count: () => number;
}

/** An upstream whose every response calls the same tool. `{"cut":true}` in the metadata cuts the response after the call,
 *  `{"hold":true}` leaves the stream open after its last event, `{"pad":n}` makes the input of the call long. */
function startLoopingUpstream(): Upstream {
  let made = 0;
  const describeResponse = (request: Value): { events: Value[]; whole: Value } => {
    const id = `resp_${(made += 1)}`;
    const pad = Number(Object(request["metadata"]).pad ?? 0);
    const item = {
      id: `fc_${made}`,
      type: "function_call",
      call_id: `call_${made}`,
      name: "shell",
      arguments: JSON.stringify({ command: `make${" ".repeat(pad)}` }),
    };
    const base = { id, object: "response", model: "gpt-5.4", status: "in_progress", output: [] };
    const usage = { input_tokens: 9, output_tokens: 2, total_tokens: 11 };
    const whole = { ...base, status: "completed", output: [item], usage };
    const events = [
      { type: "response.created", response: base },
      { type: "response.output_item.done", output_index: 0, item },
      { type: "response.completed", response: whole },
    ];
    return { events: Object(request["metadata"]).cut === true ? events.slice(0, 2) : events, whole };
  };
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    idleTimeout: 0,
    async fetch(request, self) {
      if (self.upgrade(request)) return undefined;
      const body: Value = JSON.parse(await request.text());
      const { events, whole } = describeResponse(body);
      if (body["stream"] !== true) return Response.json(whole);
      const isHeld = Object(body["metadata"]).hold === true;
      const text = events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join("");
      const stream = new ReadableStream({
        start(controller) {
          controller.enqueue(new TextEncoder().encode(text));
          if (!isHeld) controller.close();
        },
      });
      return new Response(stream, { headers: { "content-type": "text/event-stream" } });
    },
    websocket: {
      message(socket, text) {
        const request: Value = JSON.parse(String(text));
        for (const event of describeResponse(request).events) socket.send(JSON.stringify(event));
        if (Object(request["metadata"]).cut === true) socket.close(1011, "cut");
      },
    },
  });
  onTestFinished(() => server.stop(true));
  return { url: `http://127.0.0.1:${server.port}/v1`, count: () => made };
}

const KEY = keyOf("responses");
const OTHER_KEY = "sk-test-other";
const LIMIT = 4;

function startGateway({ url }: Upstream, limits: Value = { same_call: LIMIT }): InsideGateway {
  const gateway = startGatewayHere({
    config: {
      channels: { main: { platform: "responses", base_url: url, credential: CREDENTIAL } },
      groups: { responses: { platform: "responses", channels: ["main"] } },
      keys: [
        { name: "responses", group: "responses", secret: KEY, limits },
        { name: "other", group: "responses", secret: OTHER_KEY, limits },
      ],
    },
  });
  onTestFinished(() => gateway.stop());
  return gateway;
}

/** The client's result: the response's id, or the status of a refusal. */
type Got = { readonly id: string } | { readonly status: number; readonly message: string };
type Send = (body: Value) => Promise<Got>;

const FIELDS = { authorization: `Bearer ${KEY}`, "x-session-id": "night" };

async function post(gateway: InsideGateway, body: Value, key = KEY): Promise<Got> {
  const answer = await rawRequest(gateway.port, {
    method: "POST",
    target: "/v1/responses",
    fields: { ...FIELDS, authorization: `Bearer ${key}` },
    body: JSON.stringify({ model: "gpt-5.4", ...body }),
  });
  const text = answer.body.toString();
  if (answer.status !== 200) return { status: answer.status, message: JSON.parse(text).error.message };
  const whole = body["stream"] === true ? JSON.parse(readEvents(text)[0] ?? "{}").response : JSON.parse(text);
  return { id: whole.id };
}

async function sendOn(client: SocketClient, body: Value): Promise<Got> {
  const from = client.messages.length;
  client.send({ type: "response.create", model: "gpt-5.4", ...body });
  const [event] = await Promise.race([
    client.next("response.completed", from).then((each) => [each]),
    client.next("error", from).then((each) => [each]),
  ]);
  if (event?.["type"] === "response.completed") return { id: Object(event["response"]).id };
  return { status: Number(event?.["status"]), message: Object(event?.["error"]).message };
}

const TRANSPORTS: Readonly<Record<string, (gateway: InsideGateway) => Send | Promise<Send>>> = {
  "over HTTP, not streamed": (gateway) => (body) => post(gateway, body),
  "over HTTP, streamed": (gateway) => (body) => post(gateway, { ...body, stream: true }),
  "over a WebSocket": async (gateway) => {
    const client = await openSocket(gateway.port, KEY);
    return (body) => sendOn(client, body);
  },
};

const FIRST = { input: [{ role: "user", content: "Build it." }] };

function idOf(got: Got): string {
  if ("id" in got) return got.id;
  throw new Error(`refused: ${got.message}`);
}

/** Returns a request with the result of the call in the response `previous`. */
function resultOf(previous: string, output = "no rule", more: Value = {}): Value {
  const call_id = previous.replace("resp", "call");
  return {
    previous_response_id: previous,
    input: [{ type: "function_call_output", call_id, output }],
    ...more,
  };
}

/** Repeats the call, and returns the last response's id. */
async function loop(send: Send, from: string, times: number): Promise<string> {
  let previous = from;
  for (let time = 0; time < times; time += 1) previous = idOf(await send(resultOf(previous)));
  return previous;
}

describe.each(Object.entries(TRANSPORTS))("a loop of tool calls %s", (_, open) => {
  test("a loop is refused once it has as many equal calls as the limit says, and not before", async () => {
    const upstream = startLoopingUpstream();
    const gateway = startGateway(upstream);
    const send = await open(gateway);
    const last = await loop(send, idOf(await send(FIRST)), LIMIT - 1);
    expect(last).toBe(`resp_${LIMIT}`);
    for (const _repeated of [1, 2])
      expect(await send(resultOf(last))).toMatchObject({
        status: 429,
        message: expect.stringContaining(`the same tool call ${LIMIT} times in a row`),
      });
    expect(upstream.count()).toBe(LIMIT);
  });
});

test("a loop is also refused if the client goes on before the stream of each response has ended", async () => {
  const gateway = startGateway(startLoopingUpstream());
  let previous = "";
  const open: { cancel(): Promise<void> }[] = [];
  for (let time = 0; time < LIMIT; time += 1) {
    const body = time === 0 ? FIRST : resultOf(previous);
    const response = await fetch(`http://127.0.0.1:${gateway.port}/v1/responses`, {
      method: "POST",
      headers: FIELDS,
      body: JSON.stringify({ model: "gpt-5.4", ...body, stream: true, metadata: { hold: true } }),
    });
    const reader = response.body!.getReader();
    open.push(reader);
    let text = "";
    while (!text.includes("response.completed"))
      text += new TextDecoder().decode((await reader.read()).value);
    previous = /resp_\d+/.exec(text)?.[0] ?? "";
  }
  expect(await post(gateway, resultOf(previous))).toMatchObject({ status: 429 });
  for (const reader of open) await reader.cancel();
});

test("a call in a cut response counts towards a loop if it is answered, not if the request is repeated", async () => {
  const upstream = startLoopingUpstream();
  const gateway = startGateway(upstream);
  const send: Send = (body) => post(gateway, { ...body, stream: true });
  const last = await loop(send, idOf(await send(FIRST)), LIMIT - 2);
  const cut = idOf(await send(resultOf(last, "no rule", { metadata: { cut: true } })));
  expect(cut).toBe(`resp_${LIMIT}`);
  const again = idOf(await send(resultOf(last)));
  expect(await send(resultOf(again))).toMatchObject({ status: 429 });
  expect(await send(resultOf(cut))).toMatchObject({ status: 429 });
});

test("calls in another key's responses do not count towards a loop, and a previous_response_id of an odd form is no error", async () => {
  const gateway = startGateway(startLoopingUpstream());
  const last = await loop((body) => post(gateway, body), idOf(await post(gateway, FIRST)), LIMIT - 1);
  expect(await post(gateway, resultOf(last), OTHER_KEY)).toHaveProperty("id");
  for (const id of ["", "__proto__", `${last}\n`, "x".repeat(100_000)])
    expect(await post(gateway, { ...resultOf(last), previous_response_id: id })).toHaveProperty("id");
  expect(await post(gateway, resultOf(last))).toMatchObject({ status: 429 });
});
