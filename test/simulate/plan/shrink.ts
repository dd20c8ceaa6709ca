// Shortens a plan: removes parts while the same check still fails.

import { GOOD_ANSWER } from "../upstreams/upstream.ts";
import type { ClientPlan, Plan, RequestPlan } from "./plan.ts";

/** This limits the CPU time, so a busy machine gets as far as an idle one. */
const MAX_MS = 60_000;
const MAX_TRIES = 600;

function countWork(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
}

/** Shortens a plan. `fails` runs a plan and says whether the same check still fails. */
export async function shrink(
  plan: Plan,
  fails: (plan: Plan) => Promise<boolean>,
): Promise<{ plan: Plan; tries: number }> {
  let best = plan;
  let tries = 0;
  const end = countWork() + MAX_MS;
  const goesOn = (): boolean => tries < MAX_TRIES && countWork() < end;
  for (;;) {
    const before = best;
    for (const list of [cutClients, cutRequests, cutHappenings, simplifyRequests]) {
      // Each removal changes what can be removed next, so the list is made again after each success.
      for (let index = 0; goesOn();) {
        const candidate = list(best)[index];
        if (candidate === undefined) break;
        tries++;
        if (await fails(candidate)) best = candidate;
        else index++;
      }
    }
    if (best === before || !goesOn()) return { plan: best, tries };
  }
}

/** Shorter copies of the list: first without one half, then without a quarter, last without one element. */
function withoutRuns<T>(list: readonly T[]): T[][] {
  const lefts: T[][] = [];
  for (let size = list.length >> 1; size >= 1; size >>= 1)
    for (let from = 0; from < list.length; from += size) lefts.push(list.toSpliced(from, size));
  return lefts.filter((left) => left.length > 0);
}

/** Plans with fewer clients. If a client used the key of a removed client, it gets a key of its own. */
function cutClients(plan: Plan): Plan[] {
  return withoutRuns(plan.clients).map((left) => {
    const names = new Set(left.map(({ name }) => name));
    const clients = left.map((client) => (names.has(client.key) ? client : { ...client, key: client.name }));
    return { ...plan, clients };
  });
}

function cutRequests(plan: Plan): Plan[] {
  return plan.clients.flatMap((client, at) =>
    withoutRuns(client.requests).map((requests) => withClient(plan, at, { ...client, requests })),
  );
}

function cutHappenings(plan: Plan): Plan[] {
  return plan.happenings.map((_, index) => ({ ...plan, happenings: plan.happenings.toSpliced(index, 1) }));
}

const SIMPLE_REQUEST: Partial<RequestPlan> = {
  leave: null,
  slow: null,
  bad: null,
  stream: false,
  promptBytes: 40,
  maxTokens: null,
  gapMs: 0,
};

/** Plans in which one member of a request is replaced by a simple one, or one answer by a good one. */
function simplifyRequests(plan: Plan): Plan[] {
  return plan.clients.flatMap((client, at) =>
    client.requests.flatMap((request, index) => {
      const plain = Object.entries(SIMPLE_REQUEST).map(([name, to]) => ({ ...request, [name]: to }));
      const good = request.answers.map((_, place) => ({
        ...request,
        answers: request.answers.with(place, GOOD_ANSWER),
      }));
      return [...plain, ...good]
        .filter((changed) => !Bun.deepEquals(changed, request))
        .map((changed) =>
          withClient(plan, at, { ...client, requests: client.requests.with(index, changed) }),
        );
    }),
  );
}

function withClient(plan: Plan, at: number, client: ClientPlan): Plan {
  return { ...plan, clients: plan.clients.with(at, client) };
}
