// The simulated upstream. It listens, records requests, and answers in the dialect of the path or as a test configured it.
// `serve --demo`, the tests and the benchmark use it.

import type { Answer } from "./answers/answer.ts";
import { createStore } from "./answers/stored.ts";
import { applyAnswerFault, applyWireFault, type FaultName } from "./faults.ts";
import { listIds, type DemoPlatform } from "./models.ts";
import { readBody, readControl } from "./control.ts";
import { answerRequest, isModelPath, type DemoState } from "./routes.ts";
import { planSteps, type Step, type Timing } from "./script.ts";
import { acceptSocket, isForSocket } from "./web-socket.ts";
import { listenOnWire, type ReplyOutcome, type Reply, type WireServer, type WireRequest } from "./wire.ts";

export interface DemoOptions {
  readonly port?: number;
  /** Simulates one platform only. Without it, every path is served, and the format of lists follows the client's headers. */
  readonly platform?: DemoPlatform;
  /** The ids in model lists. Requests for other models are answered too. */
  readonly models?: readonly string[];
  /** The only accepted credential. Without it, any credential is accepted, or none. */
  readonly credential?: string;
  readonly firstByteMs?: number;
  /** Between two events of a stream. */
  readonly paceMs?: number;
  /** False: requests are not recorded (a server that runs for days). */
  readonly records?: boolean;
  /** Serves the responses API over a WebSocket, too. */
  readonly sockets?: boolean;
}

/** What happens to a request instead of the default. */
export interface Behaviour extends Timing {
  readonly fault?: FaultName;
  /** The number of words in the answer, one event each. */
  readonly words?: number;
  readonly answer?: Answer | ((request: ReceivedRequest) => Answer);
  /** Full control over the steps on the wire. */
  readonly steps?: (request: ReceivedRequest) => Iterable<Step>;
  /** Which request. The default is the next one that is not for a model list. */
  readonly when?: (request: ReceivedRequest) => boolean;
}

export interface ReceivedRequest extends WireRequest {
  field(name: string): string | undefined;
  /** The decompressed body as JSON. Undefined if it is not valid. */
  readonly json: unknown;
  /** Bytes of the answer that the kernel has taken so far. */
  sentBytes(): number;
  readonly ended: Promise<ReplyOutcome>;
}

export interface DemoUpstream {
  readonly port: number;
  readonly url: string;
  /** In order of arrival. Requests for model lists are separate. */
  readonly requests: readonly ReceivedRequest[];
  readonly listRequests: readonly ReceivedRequest[];
  /** Each behaviour is used once, in order, by the first request that it applies to. */
  next(...behaviours: readonly (Behaviour | FaultName)[]): void;
  /** For every request without a `next`. Undefined restores the default. */
  always(behaviour: Behaviour | FaultName | undefined): void;
  /** Resolves with the request of this index (0 is the first) as soon as it has arrived. */
  received(index: number): Promise<ReceivedRequest>;
  /** How the answer to the request of this index ended. `left`: the peer closed before its end. */
  ended(index: number): Promise<ReplyOutcome>;
  /** Refuses connections from now on, and resets the existing ones. */
  refuse(): void;
  /** Listens again on the same port. */
  accept(): void;
  stop(): void;
}

export function startDemoUpstream(options: DemoOptions = {}): DemoUpstream {
  const state = openState(options);
  let wire: WireServer | null = listenOnWire(options.port ?? 0, state.respond);
  const { port } = wire;
  const close = (): void => {
    wire?.stop();
    wire = null;
  };
  return {
    port,
    url: `http://127.0.0.1:${port}`,
    requests: state.requests,
    listRequests: state.listRequests,
    next: (...behaviours) => void state.queue.push(...behaviours.map(nameBehaviour)),
    always: (behaviour) => void (state.usual = behaviour === undefined ? {} : nameBehaviour(behaviour)),
    received: state.received,
    ended: async (index) => (await state.received(index)).ended,
    refuse: close,
    accept: () => void (wire ??= listenOnWire(port, state.respond)),
    stop: close,
  };
}

function nameBehaviour(behaviour: Behaviour | FaultName): Behaviour {
  return typeof behaviour === "string" ? { fault: behaviour } : behaviour;
}

interface UpstreamState {
  readonly requests: ReceivedRequest[];
  readonly listRequests: ReceivedRequest[];
  readonly queue: Behaviour[];
  usual: Behaviour;
  readonly received: (index: number) => Promise<ReceivedRequest>;
  readonly respond: (request: WireRequest) => Promise<Reply>;
}

function openState(options: DemoOptions): UpstreamState {
  const arrivals = new Map<number, PromiseWithResolvers<ReceivedRequest>>();
  const demo = openDemoState(options);
  const state: UpstreamState = {
    requests: [],
    listRequests: [],
    queue: [],
    usual: {},
    received(index) {
      const come = state.requests[index];
      if (come !== undefined) return Promise.resolve(come);
      const arrival = arrivals.get(index) ?? Promise.withResolvers<ReceivedRequest>();
      arrivals.set(index, arrival);
      return arrival.promise;
    },
    async respond(wireRequest) {
      const { request, reply } = receive(wireRequest);
      if (options.sockets === true && isForSocket(request))
        return { ...reply, ...acceptSocket(request, (body) => planEvents(request, body, { demo, options })) };
      if (options.records !== false) {
        (isList(request) ? state.listRequests : state.requests).push(request);
        if (!isList(request)) arrivals.get(state.requests.length - 1)?.resolve(request);
      }
      return { ...reply, steps: planReply(request, takeBehaviour(state, request), { demo, options }) };
    },
  };
  return state;
}

function openDemoState({ platform, models, credential }: DemoOptions): DemoState {
  let serial = 0;
  return {
    platform: platform ?? null,
    models: models ?? listIds(platform ?? null),
    credential: credential ?? null,
    memory: { next: () => (serial += 1), cached: new Set() },
    stored: createStore(),
  };
}

function readUrl(target: string): URL {
  return URL.parse(target, "http://demo") ?? new URL("http://demo/");
}

function isList({ method, target }: WireRequest): boolean {
  return method === "GET" && isModelPath(readUrl(target).pathname);
}

function receive(wireRequest: WireRequest): { request: ReceivedRequest; reply: Omit<Reply, "steps"> } {
  let sent = 0;
  const ending = Promise.withResolvers<ReplyOutcome>();
  const { fields } = wireRequest;
  const field = (name: string): string | undefined => fields.find(([other]) => other === name)?.[1];
  return {
    request: {
      ...wireRequest,
      field,
      json: readBody(wireRequest.body, field("content-encoding")),
      sentBytes: () => sent,
      ended: ending.promise,
    },
    reply: { took: (bytes) => void (sent += bytes), ended: ending.resolve },
  };
}

function takeBehaviour({ queue, usual }: UpstreamState, request: ReceivedRequest): Behaviour {
  const list = isList(request);
  const index = queue.findIndex(({ when }) => (when === undefined ? !list : when(request)));
  const [taken] = index < 0 ? [] : queue.splice(index, 1);
  return taken ?? ((usual.when?.(request) ?? !list) ? usual : {});
}

interface Place {
  readonly demo: DemoState;
  readonly options: DemoOptions;
}

/** The events of the response to a message on a WebSocket. */
function planEvents(request: ReceivedRequest, body: unknown, { demo, options }: Place): readonly Step[] {
  const { pathname: path } = readUrl(request.target);
  const field = (name: string): string | undefined => request.field(name);
  const control = readControl({ field, json: body }, path);
  const routed = { method: "POST", path, query: new URLSearchParams(), field, body, words: control.words };
  const answer = answerRequest(routed, demo);
  return planSteps({ ...answer, framing: "close" }, { ...options, ...control }).body;
}

function planReply(request: ReceivedRequest, chosen: Behaviour, place: Place): Iterable<Step> {
  const url = readUrl(request.target);
  const control = readControl(request, url.pathname);
  const behaviour = { ...place.options, ...control, ...chosen };
  if (behaviour.steps !== undefined) return behaviour.steps(request);
  const routed = {
    method: request.method,
    path: url.pathname,
    query: url.searchParams,
    field: (name: string) => request.field(name),
    body: request.json,
    words: behaviour.words,
  };
  const given = typeof behaviour.answer === "function" ? behaviour.answer(request) : behaviour.answer;
  const answer = applyAnswerFault(given ?? answerRequest(routed, place.demo), behaviour.fault);
  return applyWireFault(planSteps(answer, behaviour), behaviour.fault);
}
