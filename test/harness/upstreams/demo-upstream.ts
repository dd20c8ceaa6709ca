// The simulated upstream, as tests use it: it records requests, and answers as a test says.

import type { Answer } from "../model/answers/answer.ts";
import { isModelPath } from "../model/routes.ts";
import { listSteps, type Pause, type Step, type Timing, type WirePlan } from "../model/script.ts";
import { type DemoOptions, type ReadRequest, openUpstream, readRequest, readUrl } from "../model/upstream.ts";
import {
  listenOnWire,
  type Reply,
  type ReplyOutcome,
  type WireRequest,
  type WireServer,
} from "../model/wire.ts";
import { type FaultName, faultOf } from "./faults.ts";

/** Stops a stream at one place until a test opens it. */
export interface Gate extends Pause {
  /** Resolves when the stream has arrived at the gate. */
  readonly reached: Promise<void>;
  open(): void;
}

export function makeGate(): Gate {
  const reached = Promise.withResolvers<void>();
  const opened = Promise.withResolvers<void>();
  return {
    reached: reached.promise,
    open: () => opened.resolve(),
    pass: () => {
      reached.resolve();
      return opened.promise;
    },
  };
}

export interface DemoUpstreamOptions extends DemoOptions {
  readonly port?: number;
  /** False: requests are not recorded, because they would fill the memory of a server that runs for long. */
  readonly records?: boolean;
}

/** The upstream's answer to a request instead of the default. */
export interface Behaviour extends Timing {
  readonly alter?: (answer: Answer) => Answer;
  readonly fault?: FaultName;
  readonly answer?: Answer | ((request: ReceivedRequest) => Answer);
  /** The gate before the piece of this number. 0 is after the head, -1 is before the head. */
  readonly gates?: Readonly<Record<number, Gate>>;
  /** All steps on the wire, for a test that decides them itself. */
  readonly steps?: (request: ReceivedRequest) => Iterable<Step>;
  /** Which request gets this behaviour. The default is the next request that is not for a model list. */
  readonly when?: (request: ReceivedRequest) => boolean;
}

export interface ReceivedRequest extends ReadRequest {
  /** How many bytes of the answer the kernel has taken so far. */
  sentBytes(): number;
  readonly ended: Promise<ReplyOutcome>;
}

export interface DemoUpstream {
  readonly port: number;
  readonly url: string;
  /** All requests in order of arrival, except those for model lists. */
  readonly requests: readonly ReceivedRequest[];
  readonly listRequests: readonly ReceivedRequest[];
  /** Each behaviour is used once, in order, by the first request that it applies to. */
  next(...behaviours: readonly (Behaviour | FaultName)[]): void;
  /** Sets the behaviour for every request that no `next` applies to. Undefined restores the default. */
  always(behaviour: Behaviour | FaultName | undefined): void;
  /** Resolves with the request of this index (0 is the first) as soon as it has arrived. */
  received(index: number): Promise<ReceivedRequest>;
  /** How the answer to the request of this index ended. `left`: the peer closed before the answer's end. */
  ended(index: number): Promise<ReplyOutcome>;
  /** Refuses connections from now on, and resets the existing ones. */
  refuse(): void;
  /** Listens again on the same port. */
  accept(): void;
  stop(): void;
}

export function startDemoUpstream(options: DemoUpstreamOptions = {}): DemoUpstream {
  const respond = openUpstream(options);
  const requests: ReceivedRequest[] = [];
  const listRequests: ReceivedRequest[] = [];
  const arrivals = new Map<number, PromiseWithResolvers<ReceivedRequest>>();
  const queue: Behaviour[] = [];
  let usual: Behaviour = {};
  const received = (index: number): Promise<ReceivedRequest> => {
    const come = requests[index];
    if (come !== undefined) return Promise.resolve(come);
    const arrival = arrivals.get(index) ?? Promise.withResolvers<ReceivedRequest>();
    arrivals.set(index, arrival);
    return arrival.promise;
  };
  const record = (request: ReceivedRequest): void => {
    if (options.records === false) return;
    if (isList(request)) listRequests.push(request);
    else arrivals.get(requests.push(request) - 1)?.resolve(request);
  };
  const choose = (request: ReceivedRequest): Behaviour => {
    const applies = ({ when }: Behaviour): boolean => when?.(request) ?? !isList(request);
    const index = queue.findIndex(applies);
    const [taken] = index < 0 ? [] : queue.splice(index, 1);
    return taken ?? (applies(usual) ? usual : {});
  };
  const reply = (wireRequest: WireRequest): Promise<Reply> => {
    const { request, hooks } = receive(wireRequest);
    // Tests count the requests that are recorded, so the handshake of a WebSocket is not one of them.
    const isSocket = options.sockets === true && request.field("upgrade") !== undefined;
    if (!isSocket) record(request);
    const { steps, ...chosen } = isSocket ? {} : choose(request);
    if (steps !== undefined) return Promise.resolve({ ...hooks, steps: steps(request) });
    return Promise.resolve({ ...hooks, ...respond(request, translate(chosen, request)) });
  };
  let wire: WireServer | null = listenOnWire(options.port ?? 0, reply);
  const { port } = wire;
  const close = (): void => {
    wire?.stop();
    wire = null;
  };
  return {
    port,
    url: `http://127.0.0.1:${port}`,
    requests,
    listRequests,
    next: (...behaviours) => void queue.push(...behaviours.map(nameBehaviour)),
    always: (behaviour) => void (usual = behaviour === undefined ? {} : nameBehaviour(behaviour)),
    received,
    ended: async (index) => (await received(index)).ended,
    refuse: close,
    accept: () => void (wire ??= listenOnWire(port, reply)),
    stop: close,
  };
}

function nameBehaviour(behaviour: Behaviour | FaultName): Behaviour {
  return typeof behaviour === "string" ? { fault: behaviour } : behaviour;
}

const isList = ({ method, target }: WireRequest): boolean =>
  method === "GET" && isModelPath(readUrl(target).pathname);

function receive(wireRequest: WireRequest): { request: ReceivedRequest; hooks: Omit<Reply, "steps"> } {
  let sent = 0;
  const ending = Promise.withResolvers<ReplyOutcome>();
  return {
    request: { ...readRequest(wireRequest), sentBytes: () => sent, ended: ending.promise },
    hooks: { took: (bytes) => void (sent += bytes), ended: ending.resolve },
  };
}

function translate(
  { fault, answer, gates, ...others }: Omit<Behaviour, "steps">,
  request: ReceivedRequest,
): Parameters<ReturnType<typeof openUpstream>>[1] {
  const { alter, cut } = fault === undefined ? {} : faultOf(fault);
  const pass = (plan: WirePlan): Iterable<Step> => {
    const gated = gates === undefined ? plan : addGates(plan, gates);
    return cut?.(gated) ?? listSteps(gated);
  };
  return {
    ...others,
    ...(answer !== undefined && {
      answer: () => (typeof answer === "function" ? answer(request) : answer),
    }),
    ...(alter !== undefined && { alter }),
    ...((gates !== undefined || cut !== undefined) && { cut: pass }),
  };
}

function addGates(plan: WirePlan, gates: Readonly<Record<number, Gate>>): WirePlan {
  const gateAt = (index: number): Step[] => (gates[index] === undefined ? [] : [gates[index]]);
  let piece = 0;
  const body: Step[] = [];
  for (const step of plan.body) {
    if (step instanceof Uint8Array) {
      body.push(...gateAt(piece));
      piece += 1;
    }
    body.push(step);
  }
  return { ...plan, before: [...plan.before, ...gateAt(-1)], body, tail: [...gateAt(piece), ...plan.tail] };
}
