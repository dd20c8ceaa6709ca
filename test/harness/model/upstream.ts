// The simulated upstream of the tests. It answers in the dialect of the path.

import type { Answer } from "./answers/answer.ts";
import { createStore } from "./answers/stored.ts";
import { type Fault, readBody } from "./control.ts";
import { listIds, type DemoPlatform } from "./models.ts";
import { answerRequest, type DemoState } from "./routes.ts";
import { listSteps, planSteps, type Step, type Timing } from "./script.ts";
import { acceptSocket, isForSocket } from "./web-socket.ts";
import type { Reply, WireRequest } from "./wire.ts";

export interface DemoOptions {
  /** The only platform that is simulated. Absent: every path is served, and the format of lists follows the client's headers. */
  readonly platform?: DemoPlatform;
  /** The ids in model lists. Requests for other models are answered too. */
  readonly models?: readonly string[];
  /** The only accepted credential. Absent: any credential is accepted, or none. */
  readonly credential?: string;
  readonly firstByteMs?: number;
  /** The pause between two events of a stream. */
  readonly paceMs?: number;
  /** Serves the responses API over a WebSocket, too. */
  readonly sockets?: boolean;
}

export interface ReadRequest extends WireRequest {
  field(name: string): string | undefined;
  /** The decompressed body as JSON. Undefined if it is not valid. */
  readonly json: unknown;
}

/** The upstream's answer to a request instead of the default. */
export interface Behaviour extends Fault, Timing {
  readonly answer?: (request: ReadRequest) => Answer;
}

type Respond = (request: ReadRequest, chosen?: Behaviour) => Pick<Reply, "steps" | "upgrade">;

export function readRequest(request: WireRequest): ReadRequest {
  const { fields, body } = request;
  const field = (name: string): string | undefined => fields.find(([other]) => other === name)?.[1];
  return { ...request, field, json: readBody(body, field("content-encoding")) };
}

export function readUrl(target: string): URL {
  return URL.parse(target, "http://demo") ?? new URL("http://demo/");
}

export function openUpstream(options: DemoOptions): Respond {
  const state = openState(options);
  return (request, chosen) =>
    options.sockets === true && isForSocket(request)
      ? acceptSocket(request, (body) => planEvents(request, body, { state, options }))
      : { steps: planReply(request, chosen, { state, options }) };
}

function openState({ platform, models, credential }: DemoOptions): DemoState {
  let serial = 0;
  return {
    platform: platform ?? null,
    models: models ?? listIds(platform ?? null),
    credential: credential ?? null,
    memory: { next: () => (serial += 1), cached: new Set() },
    stored: createStore(),
  };
}

interface Place {
  readonly state: DemoState;
  readonly options: DemoOptions;
}

/** Returns the events of the response to a message on a WebSocket. */
function planEvents(request: ReadRequest, body: unknown, { state, options }: Place): readonly Step[] {
  const { pathname: path } = readUrl(request.target);
  const field = (name: string): string | undefined => request.field(name);
  const answer = answerRequest({ method: "POST", path, query: new URLSearchParams(), field, body }, state);
  return planSteps({ ...answer, framing: "close" }, options).body;
}

function planReply(
  request: ReadRequest,
  chosen: Behaviour | undefined,
  { state, options }: Place,
): Iterable<Step> {
  const { method, target, json: body } = request;
  const { pathname: path, searchParams: query } = readUrl(target);
  const behaviour: Behaviour = { ...options, ...chosen };
  const field = (name: string): string | undefined => request.field(name);
  const answer = behaviour.answer?.(request) ?? answerRequest({ method, path, query, field, body }, state);
  const plan = planSteps(behaviour.alter?.(answer) ?? answer, behaviour);
  return behaviour.cut?.(plan) ?? listSteps(plan);
}
