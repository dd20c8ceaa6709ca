// The simulated upstream: listens, remembers what it was asked, and answers in
// the dialect of the path, or as it was told to. `serve --demo`, the tests and
// the benchmark use it.

import type { Answer } from "./answers/answer.ts";
import { spoilAnswer, spoilScript, type FaultName } from "./faults.ts";
import { listIds, type DemoPlatform } from "./models.ts";
import { readBody, readControl } from "./control.ts";
import { answerQuestion, isModelPath, type World } from "./routes.ts";
import { writeScript, type Step, type Tempo } from "./script.ts";
import { listenOnWire, type Ending, type Reply, type Wire, type WireRequest } from "./wire.ts";

export interface DemoOptions {
  readonly port?: number;
  /** Plays one platform only; without it every path is served and lists follow the asker's headers. */
  readonly platform?: DemoPlatform;
  /** The ids that the lists tell. Any model is answered for, listed or not. */
  readonly models?: readonly string[];
  /** The only credential that is let in; without it any, or none, will do. */
  readonly credential?: string;
  readonly firstByteMs?: number;
  /** Between two events of a stream. */
  readonly paceMs?: number;
  /** False: requests are not remembered (a server that runs for days). */
  readonly records?: boolean;
}

/** What shall happen to a request instead of the usual. */
export interface Behaviour extends Tempo {
  readonly fault?: FaultName;
  /** How many words the answer has, one event each. */
  readonly words?: number;
  readonly answer?: Answer | ((request: Received) => Answer);
  /** Full control: what is done on the wire. */
  readonly steps?: (request: Received) => Iterable<Step>;
  /** Which request; without it the next one that isn't for a model list. */
  readonly when?: (request: Received) => boolean;
}

export interface Received extends WireRequest {
  field(name: string): string | undefined;
  /** The body as JSON (decompressed), undefined where it isn't. */
  readonly json: unknown;
  /** Bytes of the answer that the kernel has taken so far. */
  sentBytes(): number;
  readonly ended: Promise<Ending>;
}

export interface DemoUpstream {
  readonly port: number;
  readonly url: string;
  /** In order of arrival; requests for model lists apart. */
  readonly requests: readonly Received[];
  readonly listRequests: readonly Received[];
  /** Behaviours are used up in order, each by the first request that it is for. */
  next(...behaviours: readonly (Behaviour | FaultName)[]): void;
  /** For every request that no `next` is for; undefined goes back to the usual. */
  always(behaviour: Behaviour | FaultName | undefined): void;
  /** Resolves with the request of this index (0 is the first) as soon as it has come. */
  received(index: number): Promise<Received>;
  /** How the answer to the request of this index ended; `left`: the peer went away before its end. */
  ended(index: number): Promise<Ending>;
  /** From now on connections are refused, and those that exist are reset. */
  refuse(): void;
  /** Listens again on the same port. */
  accept(): void;
  stop(): void;
}

export function startDemoUpstream(options: DemoOptions = {}): DemoUpstream {
  const state = openState(options);
  let wire: Wire | null = listenOnWire(options.port ?? 0, state.respond);
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

interface State {
  readonly requests: Received[];
  readonly listRequests: Received[];
  readonly queue: Behaviour[];
  usual: Behaviour;
  readonly received: (index: number) => Promise<Received>;
  readonly respond: (request: WireRequest) => Promise<Reply>;
}

function openState(options: DemoOptions): State {
  const arrivals = new Map<number, PromiseWithResolvers<Received>>();
  const world = openWorld(options);
  const state: State = {
    requests: [],
    listRequests: [],
    queue: [],
    usual: {},
    received(index) {
      const come = state.requests[index];
      if (come !== undefined) return Promise.resolve(come);
      const arrival = arrivals.get(index) ?? Promise.withResolvers<Received>();
      arrivals.set(index, arrival);
      return arrival.promise;
    },
    async respond(wireRequest) {
      const { request, reply } = receive(wireRequest);
      if (options.records !== false) {
        (isList(request) ? state.listRequests : state.requests).push(request);
        if (!isList(request)) arrivals.get(state.requests.length - 1)?.resolve(request);
      }
      return { ...reply, steps: plan(request, takeBehaviour(state, request), { world, options }) };
    },
  };
  return state;
}

function openWorld({ platform, models, credential }: DemoOptions): World {
  let serial = 0;
  return {
    platform: platform ?? null,
    models: models ?? listIds(platform ?? null),
    credential: credential ?? null,
    memory: { next: () => (serial += 1), cached: new Set() },
    stored: new Map(),
  };
}

function readUrl(target: string): URL {
  return URL.parse(target, "http://demo") ?? new URL("http://demo/");
}

function isList({ method, target }: WireRequest): boolean {
  return method === "GET" && isModelPath(readUrl(target).pathname);
}

function receive(wireRequest: WireRequest): { request: Received; reply: Omit<Reply, "steps"> } {
  let sent = 0;
  const ending = Promise.withResolvers<Ending>();
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

function takeBehaviour({ queue, usual }: State, request: Received): Behaviour {
  const list = isList(request);
  const index = queue.findIndex(({ when }) => (when === undefined ? !list : when(request)));
  const [taken] = index < 0 ? [] : queue.splice(index, 1);
  return taken ?? ((usual.when?.(request) ?? !list) ? usual : {});
}

function plan(
  request: Received,
  told: Behaviour,
  place: { world: World; options: DemoOptions },
): Iterable<Step> {
  const url = readUrl(request.target);
  const control = readControl(request, url.pathname);
  const behaviour = { ...place.options, ...control, ...told };
  if (behaviour.steps !== undefined) return behaviour.steps(request);
  const question = {
    method: request.method,
    path: url.pathname,
    query: url.searchParams,
    field: (name: string) => request.field(name),
    body: request.json,
    words: behaviour.words,
  };
  const given = typeof behaviour.answer === "function" ? behaviour.answer(request) : behaviour.answer;
  const answer = spoilAnswer(given ?? answerQuestion(question, place.world), behaviour.fault);
  return spoilScript(writeScript(answer, behaviour), behaviour.fault);
}
