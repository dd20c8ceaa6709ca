// An upstream of any dialect that plays a model's turns from a script and is as strict as a provider: it notes each rule that
// a request breaks.

import type { DialectName } from "../../../src/dialects/dialect.ts";
import { type Any, sse } from "../../bridges/calls.ts";
import { formAnswer, joinAnswer, judge } from "../../bridges/provider.ts";
import { type ModelTurn } from "../../bridges/session.ts";

export const COUNTS = { prompt: 100, read: 40, output: 20, reasoning: 5 };

export interface Asked {
  readonly path: string;
  readonly headers: Headers;
  readonly body: Any;
  readonly text: string;
}

export interface ScriptedUpstream {
  readonly url: string;
  readonly asked: Asked[];
  readonly problems: string[];
  /** Comes before the script, once. */
  next: ((asked: Asked) => Response) | null;
  stop(): void;
}

const PATHS: Readonly<Record<DialectName, RegExp>> = {
  messages: /^\/v1\/messages$/,
  responses: /^\/v1\/responses$/,
  chat: /^\/v1\/chat\/completions$/,
  content: /^\/v1beta\/models\/[^/]+:(streamG|g)enerateContent$/,
};

export function startScriptedUpstream(dialect: DialectName, script: readonly ModelTurn[]): ScriptedUpstream {
  const server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    async fetch(request) {
      const { pathname, search } = new URL(request.url);
      if (request.method === "GET") return Response.json({ data: [], models: [] });
      const text = await request.text();
      const body: Any = JSON.parse(text);
      const asked: Asked = { path: pathname + search, headers: request.headers, body, text };
      upstream.asked.push(asked);
      if (!PATHS[dialect].test(pathname)) upstream.problems.push(`path ${pathname}`);
      upstream.problems.push(...judge(dialect, body));
      const { next } = upstream;
      upstream.next = null;
      if (next !== null) return next(asked);
      const turn = script[(upstream.asked.length - 1) % script.length];
      if (turn === undefined) throw new Error("the script is empty");
      const events = formAnswer(dialect, turn, COUNTS, (each) => each.match(/.{1,7}/gsu) ?? [each]);
      const isStream = body.stream === true || pathname.includes(":stream");
      if (!isStream) return Response.json(joinAnswer(dialect, formAnswer(dialect, turn, COUNTS)));
      return new Response(sse(events), { headers: { "content-type": "text/event-stream" } });
    },
  });
  const upstream: ScriptedUpstream = {
    url: `http://127.0.0.1:${server.port}`,
    asked: [],
    problems: [],
    next: null,
    stop: () => void server.stop(true),
  };
  return upstream;
}
