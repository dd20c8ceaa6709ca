// An upstream of any dialect that plays a model's turns from a script. It is as strict as a provider: it
// notes each rule that a request breaks. Its counts of tokens come from the script, or else from COUNTS.

import type { DialectName } from "../../../src/dialects/dialect.ts";
import { type Any, sse } from "../../bridges/calls.ts";
import { judge } from "../../bridges/judge.ts";
import { type Counts, formAnswer, joinAnswer } from "../../bridges/provider.ts";
import type { ModelTurn } from "../../bridges/session.ts";

export const COUNTS = { prompt: 100, read: 40, output: 20, reasoning: 5 };

export interface Asked {
  readonly path: string;
  readonly headers: Headers;
  readonly body: Any;
  readonly text: string;
}

/** A turn of the model. With `breaks`, its connection is cut in the middle, or nothing more comes. */
export type Played =
  | Response
  | { readonly turn: ModelTurn; readonly counts?: Counts; readonly breaks?: "cut" | "stalls" };

export interface ScriptedUpstream {
  readonly url: string;
  readonly asked: Asked[];
  /** The requests for a count of tokens. */
  readonly counted: Asked[];
  readonly problems: string[];
  /** If `next` is set, it answers the next request in place of the script, once. */
  next: ((asked: Asked) => Response) | null;
  stop(): void;
}

const COUNT = /\/count_tokens$|\/input_tokens$|:countTokens$/;
const PATHS: Readonly<Record<DialectName, RegExp>> = {
  messages: /^\/v1\/messages$/,
  responses: /^\/v1\/responses$/,
  chat: /^\/v1\/chat\/completions$/,
  content: /^\/v1beta\/models\/[^/]+:(streamG|g)enerateContent$/,
};

/** Plays the turns of a list, one after the other. */
export function playList(script: readonly ModelTurn[]): (asked: Asked, at: number) => Played {
  return (_asked, at) => {
    const turn = script[at % script.length];
    if (turn === undefined) throw new Error("the script is empty");
    return { turn };
  };
}

export function startScriptedUpstream(
  dialect: DialectName,
  play: (asked: Asked, at: number) => Played,
): ScriptedUpstream {
  const server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    idleTimeout: 0,
    async fetch(request) {
      const { pathname, search } = new URL(request.url);
      if (request.method === "GET") return Response.json({ data: [], models: [] });
      const text = await request.text();
      const body: Any = JSON.parse(text);
      const asked: Asked = { path: pathname + search, headers: request.headers, body, text };
      if (COUNT.test(pathname)) {
        upstream.counted.push(asked);
        return takeNext(asked) ?? Response.json({ input_tokens: 4321, totalTokens: 4321 });
      }
      upstream.asked.push(asked);
      if (!PATHS[dialect].test(pathname)) upstream.problems.push(`path ${pathname}`);
      upstream.problems.push(...judge(dialect, body));
      return takeNext(asked) ?? answer(dialect, asked, play(asked, upstream.asked.length - 1));
    },
  });
  const takeNext = (asked: Asked): Response | undefined => {
    const { next } = upstream;
    upstream.next = null;
    return next?.(asked);
  };
  const upstream: ScriptedUpstream = {
    url: `http://127.0.0.1:${server.port}`,
    asked: [],
    counted: [],
    problems: [],
    next: null,
    stop: () => void server.stop(true),
  };
  return upstream;
}

function answer(dialect: DialectName, { body, path }: Asked, played: Played): Response {
  if (played instanceof Response) return played;
  const { turn, counts = COUNTS, breaks } = played;
  const isStream = body.stream === true || path.includes(":stream");
  if (!isStream) return Response.json(joinAnswer(dialect, formAnswer(dialect, turn, counts)));
  const events = sse(formAnswer(dialect, turn, counts, (each) => each.match(/.{1,7}/gsu) ?? [each]));
  return new Response(breaks === undefined ? events : breakOff(events, breaks), {
    headers: { "content-type": "text/event-stream" },
  });
}

/** Streams the first half of an answer. Then the connection ends, or stays open without another byte. */
function breakOff(events: string, breaks: "cut" | "stalls"): ReadableStream {
  return new ReadableStream({
    start(controller) {
      controller.enqueue(Buffer.from(events.slice(0, events.length / 2)));
      if (breaks === "cut") controller.close();
    },
  });
}
