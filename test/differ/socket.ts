// The responses API over a WebSocket: the same messages through both executables.

import type { ServerWebSocket } from "bun";
import { events } from "./dialects.ts";
import { type Scenario, secretOf, type Side } from "./side.ts";
import type { Fields } from "./wire.ts";

/** The upstream's messages. The words `close` and `break` end the connection. */
type Reply = readonly string[];

interface Turn {
  readonly send: string;
  /** The last message that the client waits for has this text. */
  readonly until?: string;
  readonly reply?: Reply;
}

export interface SocketScenario extends Scenario {
  readonly turns: readonly Turn[];
  /** The upstream refuses the upgrade with this status. */
  readonly refusal?: number;
}

export interface SocketOutcome {
  readonly handshakes: readonly Fields[];
  readonly received: readonly string[];
  readonly messages: readonly string[];
  readonly end: string;
}

const ANSWER = events("responses").map((event) => /data: (.*)/.exec(event)?.[1] ?? "");
const create = (more: object = {}): string =>
  JSON.stringify({ type: "response.create", model: "gpt-5.4", input: "Hi", ...more });

function scene(name: string, turns: readonly Turn[], more: Partial<SocketScenario> = {}): SocketScenario {
  const { channels = { a: {} } } = more;
  const placed = Object.fromEntries(
    Object.entries(channels).map(([short, section]) => [
      short,
      { platform: "responses", at: "socket", ...section },
    ]),
  );
  return {
    name: `socket-${name}`,
    steps: [],
    turns,
    group: { platform: "responses" },
    ...more,
    channels: placed,
  };
}

const fine: Turn = { send: create(), until: "response.completed", reply: ANSWER };

export const SOCKET_SCENARIOS: readonly SocketScenario[] = [
  scene("fine", [fine, fine]),
  scene("alias", [{ ...fine, send: create({ model: "fast", pad: "\u00e9" }) }], {
    channels: { a: { aliases: { fast: "gpt-5.4" } } },
  }),
  scene("refused", [fine], { refusal: 403 }),
  scene("unsupported", [fine], { channels: { a: { websocket: false } } }),
  scene("closed", [{ send: create(), reply: [...ANSWER.slice(0, 4), "close"] }]),
  scene("broken", [{ send: create(), reply: [...ANSWER.slice(0, 4), "break"] }]),
  scene("leaves", [{ send: create(), until: "world", reply: ANSWER.slice(0, 6) }]),
  scene("spent", [fine, { send: create(), until: '"error"', reply: ANSWER }], {
    key: { limits: { usd_total: "0.0001" } },
  }),
  scene("unpriced", [{ send: create({ model: "unheard-of" }), until: '"error"' }], {
    key: { limits: { usd_total: "1" } },
  }),
  ...[
    "{",
    "[]",
    '{"type":"session.update"}',
    '{"type":"response.create","type":"response.inject"}',
    "{}",
    '{"type":"response.create"}',
  ].map((send, at) => scene(`odd-${at}`, [{ send, until: '"error"' }, fine])),
  scene("inject", [
    { send: create(), until: "world", reply: ANSWER.slice(0, 6) },
    { send: '{"type":"response.inject","input":[]}', until: "response.completed", reply: ANSWER.slice(6) },
  ]),
  scene("failed", [
    {
      send: create(),
      until: "error",
      reply: [
        '{"type":"error","status":429,"error":{"type":"rate_limit_error","code":"rate_limit_exceeded","message":"as scripted"}}',
      ],
    },
    fine,
  ]),
];

interface State {
  readonly scenario: SocketScenario;
  readonly handshakes: Fields[];
  readonly received: string[];
}

/** Starts the WebSocket upstream of one side, which sends what the scenarios say. */
export function startSockets(side: Side): {
  run(scenario: SocketScenario): Promise<SocketOutcome>;
  stop(): void;
} {
  const states = new Map<string, State>();
  const server = Bun.serve<{ state: State }>({
    hostname: "127.0.0.1",
    port: 0,
    fetch(request, self) {
      const state = states.get(new URL(request.url).pathname.split("/")[1] ?? "");
      if (state === undefined || request.headers.get("upgrade") === null)
        return Response.json({ object: "list", data: [] });
      state.handshakes.push([...request.headers].filter(([name]) => !name.startsWith("sec-websocket-")));
      const { refusal } = state.scenario;
      if (refusal !== undefined)
        return Response.json({ error: { message: "as scripted" } }, { status: refusal });
      return self.upgrade(request, { data: { state } }) ? undefined : new Response("", { status: 400 });
    },
    websocket: {
      message: (socket: ServerWebSocket<{ state: State }>, text) => {
        const { scenario, received } = socket.data.state;
        const { reply = [] } =
          scenario.turns.filter(({ reply: each }) => each !== undefined)[received.push(String(text)) - 1] ??
          {};
        for (const each of reply)
          if (each === "close") socket.close(1013, "as scripted");
          else if (each === "break") socket.terminate();
          else socket.send(each);
      },
    },
  });
  side.socketPort = server.port ?? 0;
  const run = async (scenario: SocketScenario): Promise<SocketOutcome> => {
    const state: State = { scenario, handshakes: [], received: [] };
    states.set(scenario.name, state);
    const fields = {
      authorization: `Bearer ${secretOf(scenario.name)}`,
      "openai-beta": "responses_websockets=2026-02-06",
      "x-gateway-label": scenario.name,
    };
    const socket = new WebSocket(`ws://127.0.0.1:${side.port}/v1/responses`, { headers: fields });
    const messages: string[] = [];
    let wake = (): void => {};
    let closed: string | null = null;
    const opened = Promise.withResolvers<void>();
    const over = Promise.withResolvers<void>();
    socket.addEventListener("open", () => opened.resolve());
    socket.addEventListener("message", ({ data }) => {
      messages.push(String(data));
      wake();
    });
    socket.addEventListener("close", ({ code, reason }) => {
      closed = `${code} ${reason}`;
      opened.resolve();
      over.resolve();
      wake();
    });
    await opened.promise;
    for (const { send, until } of scenario.turns) {
      const from = messages.length;
      if (closed !== null) break;
      socket.send(send);
      const isDone = (): boolean =>
        closed !== null || (until !== undefined && messages.slice(from).some((each) => each.includes(until)));
      while (!isDone()) await new Promise<void>((resolve) => (wake = resolve));
    }
    const end = closed ?? "the client closed";
    socket.close();
    await over.promise;
    return { handshakes: state.handshakes, received: state.received, messages, end };
  };
  return { run, stop: () => void server.stop(true) };
}
