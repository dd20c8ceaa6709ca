// One upstream: its requests, its answers, and a record of both.

import type { Check } from "../checks/promises.ts";
import type { AnswerPlan, ChannelPlan, Plan, RequestPlan } from "../plan/plan.ts";
import type { Network } from "../world/network.ts";
import type { Arriving } from "../world/upstream-side.ts";
import { NATURE, type Owner, type Scheduler } from "../world/scheduler.ts";
import type { Send } from "../clients/send.ts";
import { SECRET } from "../clients/requests.ts";
import type { Counts } from "./answers.ts";

/** A request as an upstream saw it. */
export interface Arrival {
  /** Client, request and send: `c3r2s0`. Empty for requests of the gateway itself (model lists). */
  readonly send: string;
  readonly attempt: number;
  readonly channel: string;
  readonly at: number;
  /** The gateway that sent it. It may be dead: an upstream may read late. */
  readonly sender: Owner;
  /** Virtual time at which its last byte was sent, or its connection was lost. */
  endedAt: number;
  /** How long the gateway had waited when its answer began, since the last byte of the request left. */
  waited: number;
  /** How it is answered; null while that is open. */
  plan: AnswerPlan | null;
  status: number;
  /** The body of a successful answer. */
  body: Buffer | null;
  counts: Counts;
  model: string;
  /** The last byte of a complete answer was sent. */
  sent: boolean;
  stream: boolean;
  estimated: number;
  /** How much of its answer the gateway has read. */
  readonly bytesRead: () => number;
  /** When the gateway wrote it. Requests on slow lines arrive after later ones. */
  readonly sentAt: number;
}

/** What upstreams record and report. */
export interface UpstreamWatch {
  readonly requests: ReadonlyMap<string, RequestPlan>;
  readonly plan: Plan;
  readonly arrivals: Arrival[];
  /** The same, by send and by request. */
  readonly bySend: Map<string, Arrival[]>;
  readonly byRequest: Map<string, Arrival[]>;
  readonly healed: () => boolean;
  readonly sends: ReadonlyMap<string, Send>;
  accuse(check: Check, text: string): void;
}

export const GOOD_ANSWER: AnswerPlan = {
  kind: "answer",
  status: 200,
  output: 5,
  cacheRead: 0,
  delayMs: 1,
  paceMs: 0,
  framing: "chunked",
  cut: null,
  missing: 0,
};

export const credentialOf = (channel: string): string => `cred-${channel}-4fJ7qLx2VbN8sKw3`;

export class Upstream {
  readonly plan: ChannelPlan;
  readonly scheduler: Scheduler;
  readonly watch: UpstreamWatch;
  readonly owner = NATURE;

  constructor(
    plan: ChannelPlan,
    network: Network,
    watch: UpstreamWatch,
    answer: (upstream: Upstream, arriving: Arriving) => void,
  ) {
    this.plan = plan;
    this.scheduler = network.scheduler;
    this.watch = watch;
    network.addUpstream(`${plan.name}.test`, (arriving) => answer(this, arriving));
  }

  get credential(): string {
    return credentialOf(this.plan.name);
  }

  arrive(send: string, sender: Owner, more: Partial<Arrival>): Arrival {
    const { watch, plan, scheduler } = this;
    const own = watch.bySend.get(send) ?? [];
    const arrival: Arrival = {
      send,
      attempt: send === "" ? 0 : own.length,
      channel: plan.name,
      at: scheduler.now,
      sender,
      endedAt: Number.POSITIVE_INFINITY,
      waited: 0,
      plan: null,
      status: 0,
      body: null,
      counts: { input: 0, cacheRead: 0, output: 0 },
      model: "",
      sent: false,
      stream: false,
      estimated: 0,
      bytesRead: () => 0,
      sentAt: 0,
      ...more,
    };
    watch.arrivals.push(arrival);
    if (send === "") return arrival;
    watch.bySend.set(send, [...own, arrival]);
    const id = requestOf(send);
    watch.byRequest.set(id, [...(watch.byRequest.get(id) ?? []), arrival]);
    return arrival;
  }

  /** The answers of a plan go to the sends of a request, one after another. */
  choose(arrival: Arrival): AnswerPlan {
    const { watch } = this;
    const id = requestOf(arrival.send);
    const before = (watch.byRequest.get(id) ?? []).filter((other) => other !== arrival).length;
    const planned = watch.healed() ? undefined : watch.requests.get(id)?.answers[before];
    return planned ?? { ...GOOD_ANSWER, output: 3 + (before % 5) };
  }

  /** The tokens of a prompt of this length, and those of the answer. */
  estimate(arrival: Arrival, bytes: number, { cacheRead, output }: AnswerPlan): void {
    arrival.estimated = Math.ceil(bytes / 4);
    const cached = Math.min(cacheRead, arrival.estimated);
    arrival.counts = { input: arrival.estimated - cached, cacheRead: cached, output };
  }

  checkRequest({ name, fields, body, target }: Arriving): void {
    const text = `${target} ${[...fields].join(" ")} ${body.toString("latin1")}`;
    if (text.includes(SECRET)) this.watch.accuse("secrets", `A client's key went to the upstream ${name}.`);
    const shown = ["authorization", "x-api-key", "x-goog-api-key"]
      .map((field) => fields.get(field))
      .join(" ");
    if (!shown.includes(this.credential))
      this.watch.accuse(
        "secrets",
        `The upstream ${this.plan.name} did not get its own credential, but: ${shown}`,
      );
  }
}

/** `c3r2s0a1` */
export function markOf({ send, attempt }: Arrival): string {
  return `${send}a${attempt}`;
}

/** `c3r2` of `c3r2s0` */
function requestOf(send: string): string {
  return send.replace(/s\d+$/, "");
}

export function failsAfter({ stream }: Arrival, { kind, output }: AnswerPlan): number | null {
  return kind === "error event" && stream ? Math.floor(output / 2) : null;
}
