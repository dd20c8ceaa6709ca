// Shortens a plan: removes parts while the same check still fails.

import { GOOD_ANSWER } from "../upstreams/upstream.ts";
import type { ClientPlan, Plan, RequestPlan } from "./plan.ts";

/** A smaller or simpler plan; null if there is nothing to remove. */
type Cut = Plan | null;

export interface Shrinking {
  readonly plan: Plan;
  readonly tries: number;
}

/** Of the processor: a busy machine shortens as much. The result can be shortened again. */
const MAX_MS = 60_000;

function countWork(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
}

/** `fails` runs a plan and says whether the check still fails. At most `most` plans are tried, for at most a minute. */
export async function shrink(
  plan: Plan,
  fails: (plan: Plan) => boolean | Promise<boolean>,
  most = 600,
): Promise<Shrinking> {
  let best = plan;
  let tries = 0;
  const end = countWork() + MAX_MS;
  const goesOn = (): boolean => tries < most && countWork() < end;
  for (;;) {
    const before = best;
    for (const list of [cutClients, cutRequests, cutHappenings, cutChannels, simplifyRequests]) {
      // Each removal changes what can be removed next, so the list is made again after each success.
      for (let index = 0; goesOn();) {
        const candidate = list(best)[index];
        if (candidate === undefined) break;
        if (candidate === null) {
          index++;
          continue;
        }
        tries++;
        if (await fails(candidate)) best = candidate;
        else index++;
      }
    }
    if (best === before || !goesOn()) return { plan: best, tries };
  }
}

function cutClients(plan: Plan): Cut[] {
  const { clients } = plan;
  if (clients.length < 2) return [];
  const half = clients.length >> 1;
  return [
    clients.slice(0, half),
    clients.slice(half),
    ...clients.map((_, index) => clients.toSpliced(index, 1)),
  ].map((left) => ({ ...plan, clients: left.map((client) => keepKey(client, left)) }));
}

/** A client that owns a key stays, because the config lists the key under its name. */
function keepKey(client: ClientPlan, left: readonly ClientPlan[]): ClientPlan {
  return left.some(({ name }) => name === client.key) ? client : { ...client, key: client.name };
}

function cutRequests(plan: Plan): Cut[] {
  return plan.clients.flatMap((client, at) => {
    const { requests } = client;
    if (requests.length < 2) return [];
    return withoutRuns(requests).map((left) => withClient(plan, at, { ...client, requests: left }));
  });
}

/** First without one half of them, then without a quarter, and so on. */
function withoutRuns<T>(list: readonly T[]): T[][] {
  const lefts: T[][] = [];
  for (let size = list.length >> 1; size >= 1; size >>= 1)
    for (let from = 0; from < list.length; from += size) lefts.push(list.toSpliced(from, size));
  return lefts.filter((left) => left.length > 0);
}

function cutHappenings(plan: Plan): Cut[] {
  const { happenings } = plan;
  const all = happenings.length > 1 ? [{ ...plan, happenings: [] }] : [];
  return [...all, ...happenings.map((_, index) => ({ ...plan, happenings: happenings.toSpliced(index, 1) }))];
}

function cutChannels(plan: Plan): Cut[] {
  return plan.channels.map((channel, index) => {
    const others = plan.channels.toSpliced(index, 1);
    const needed = plan.clients.some(({ dialect }) => dialect === channel.platform);
    const isLast = others.every(({ platform }) => platform !== channel.platform);
    const named = plan.happenings.some(
      (happening) => "channel" in happening && happening.channel === channel.name,
    );
    return (needed && isLast) || others.length === 0 || named ? null : { ...plan, channels: others };
  });
}

export const SIMPLE_CLIENT: Partial<ClientPlan> = {
  retries: 0,
  limits: {},
  startMs: 0,
};

export const SIMPLE_REQUEST: Partial<RequestPlan> = {
  leave: null,
  slow: null,
  bad: null,
  stream: false,
  promptBytes: 40,
  maxTokens: null,
  gapMs: 0,
};

/** Requests without anything special, and good answers in place of others. */
function simplifyRequests(plan: Plan): Cut[] {
  return plan.clients.flatMap((client, at) =>
    client.requests.flatMap((request, index) => {
      const put = (changed: RequestPlan): Cut =>
        withClient(plan, at, { ...client, requests: client.requests.with(index, changed) });
      const plain = Object.entries(SIMPLE_REQUEST).map(([name, to]) =>
        Bun.deepEquals(Reflect.get(request, name), to) ? null : put({ ...request, [name]: to }),
      );
      const answers = request.answers.map((answer, place) =>
        Bun.deepEquals(answer, GOOD_ANSWER)
          ? null
          : put({ ...request, answers: request.answers.with(place, GOOD_ANSWER) }),
      );
      return [...plain, ...answers];
    }),
  );
}

function withClient(plan: Plan, at: number, client: ClientPlan): Plan {
  return { ...plan, clients: plan.clients.with(at, client) };
}
