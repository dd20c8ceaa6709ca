// Makes a plan from a seed. Each run has only a few kinds of faults, and a random number of each kind.
// If everything failed at once in each run, the runs would find less.

import { Random } from "../world/random.ts";
import {
  type AnswerPlan,
  BAD_KINDS,
  type ChannelPlan,
  type ClientPlan,
  DIALECTS,
  type Dialect,
  type Happening,
  type LimitPlan,
  type Plan,
  type RequestPlan,
  USD_LIMITS,
} from "./plan.ts";

/** 2026-11-21, and moments around the end of a day or a month. */
const BEGINNINGS = [
  "2026-11-21T10:00:00Z",
  "2026-11-30T23:59:40Z",
  "2026-12-31T23:59:50Z",
  "2027-02-28T23:58:00Z",
  "2026-11-21T23:59:55Z",
];

export function makePlan(seed: number): Plan {
  return addOddAnswers(addFailingStop(addSlowCut(addRush(makeMainPlan(seed)))));
}

/** The main part of a plan. The parts that are added to it have random numbers of their own. */
function makeMainPlan(seed: number): Plan {
  const random = new Random(seed, "plan");
  const swarm = makeSwarm(random);
  const channels = makeChannels(random);
  const dialects = [...new Set(channels.map(({ platform }) => platform))];
  let number = 0;
  const hurry = random.chance(600);
  const owners = new Map<Dialect, string>();
  const clients = Array.from({ length: random.between(3, 14) }, (_, index): ClientPlan => {
    const name = `c${index}`;
    const limits = random.chance(swarm.limits) ? makeLimits(random) : {};
    const dialect = random.pick(dialects);
    // Some clients use the key of another client.
    const owner = random.chance(300) ? owners.get(dialect) : undefined;
    owners.set(dialect, owner ?? name);
    const requests = Array.from({ length: random.between(5, 45) }, () =>
      makeRequest(random, swarm, number++, hurry),
    );
    return {
      name,
      key: owner ?? name,
      dialect,
      startMs: random.skewed(0, 3000),
      retries: random.chance(500) ? 2 : 0,
      limits,
      requests,
    };
  });
  return {
    seed,
    wall: Date.parse(random.pick(BEGINNINGS)),
    rotateMonthly: random.chance(250),
    drainMs: random.chance(300) ? random.between(50, 3000) : 0,
    attempts: random.between(1, 4),
    weather: {
      latency: random.pick([50, 200, 1000, 8000]),
      window: random.pick([1 << 20, 1 << 16, 3000]),
      piece: random.pick([0, 0, 0, 1500, 60]),
    },
    channels,
    clients,
    happenings: makeHappenings(random, channels),
  };
}

/** How many of a thousand requests, or answers, have a fault of each kind. Most kinds are 0 in most runs. */
type Swarm = ReturnType<typeof makeSwarm>;

function makeSwarm(random: Random) {
  const rate = (of: number, most: number): number => (random.chance(of) ? random.between(20, most) : 0);
  return {
    cuts: rate(350, 400),
    errors: rate(350, 400),
    events: rate(200, 300),
    silence: rate(150, 150),
    closing: rate(250, 200),
    slowUpstreams: rate(200, 300),
    leaving: rate(300, 500),
    slowClients: rate(200, 300),
    bad: rate(200, 250),
    limits: rate(300, 600),
  };
}

function makeChannels(random: Random): ChannelPlan[] {
  const platforms = DIALECTS.filter(() => random.chance(600));
  if (platforms.length === 0) platforms.push("messages");
  return platforms.flatMap((platform) =>
    Array.from({ length: random.between(1, 3) }, (_, index): ChannelPlan => ({
      name: `${platform}${index}`,
      platform,
      priority: random.chance(700) ? index + 1 : 1,
    })),
  );
}

function makeLimits(random: Random): LimitPlan {
  return {
    ...(random.chance(350) ? { requestsPerMinute: random.between(2, 10) } : {}),
    ...(random.chance(350) ? { concurrentRequests: random.between(1, 3) } : {}),
    ...(random.chance(350) ? { usdPerDay: random.pick(USD_LIMITS) } : {}),
    ...(random.chance(200) ? { usdPerMonth: random.pick(USD_LIMITS) } : {}),
    ...(random.chance(200) ? { usdTotal: random.pick(USD_LIMITS) } : {}),
  };
}

function makeRequest(random: Random, swarm: Swarm, number: number, hurry: boolean): RequestPlan {
  return {
    number,
    stream: random.chance(550),
    promptBytes: random.chance(50) ? random.between(10_000, 90_000) : random.between(20, 600),
    maxTokens: random.chance(600) ? random.pick([1, 50, 1000]) : null,
    gapMs: hurry ? random.skewed(0, 60) : random.skewed(0, 4000),
    leave: random.chance(swarm.leaving)
      ? {
          afterBytes: random.chance(500) ? random.skewed(1, 4000) : 1e9,
          afterMs: random.skewed(0, 3000),
        }
      : null,
    slow: random.chance(swarm.slowClients)
      ? { everyBytes: random.between(1, 2000), ms: random.skewed(1, 2000) }
      : null,
    bad: random.chance(swarm.bad) ? random.pick(BAD_KINDS) : null,
    answers: Array.from({ length: random.between(1, 3) }, () => makeAnswer(random, swarm)),
  };
}

function makeAnswer(random: Random, swarm: Swarm): AnswerPlan {
  const kind = pickKind(random, swarm);
  return {
    kind,
    status: kind === "error status" ? random.pick([400, 401, 403, 404, 408, 429, 500, 503, 529]) : 200,
    output: random.skewed(1, 60),
    cacheRead: random.chance(200) ? random.between(1, 50) : 0,
    delayMs: random.skewed(0, 400),
    paceMs: random.chance(swarm.slowUpstreams) ? random.skewed(1, 300) : 0,
    framing: random.chance(800)
      ? random.pick(["length", "chunked"])
      : random.pick(["length", "chunked", "close"]),
    cut: random.chance(swarm.cuts)
      ? { atPerMille: random.between(0, 1000), how: random.pick(["fin", "rst", "fin", "rst", "stall"]) }
      : null,
  };
}

function pickKind(random: Random, swarm: Swarm): AnswerPlan["kind"] {
  if (random.chance(swarm.errors)) return "error status";
  if (random.chance(swarm.events)) return "error event";
  if (random.chance(swarm.silence)) return "silence";
  return random.chance(swarm.closing) ? "close at once" : "answer";
}

type Make = (random: Random, channels: readonly ChannelPlan[]) => Happening;

const at = (random: Random): number => random.skewed(20, 12_000);

/** The first two KINDS kill the gateway. They are frequent: no other test can kill it at every moment. */
const DEATHS = 2;

const KINDS: readonly Make[] = [
  (random) => ({
    kind: "kill",
    atMs: at(random),
    afterSteps: random.skewed(1, 80),
    downMs: random.skewed(1, 3000),
  }),
  (random) => ({
    kind: "cut power",
    atMs: at(random),
    afterSteps: random.skewed(1, 80),
    downMs: random.between(200, 4000),
  }),
  (random) => ({
    kind: "stop",
    atMs: at(random),
    graceMs: random.skewed(1, 8000),
    downMs: random.skewed(1, 2000),
  }),
  (random) => ({
    kind: "clock",
    atMs: at(random),
    byMs: random.pick([-3_600_000, -90_000, -500, 700, 61_000, 86_400_000]),
  }),
  (random) => ({ kind: "standstill", atMs: at(random), ms: random.skewed(50, 40_000) }),
  (random) => ({ kind: "disk full", atMs: at(random), room: random.int(3000), ms: random.skewed(100, 6000) }),
  (random) => ({
    kind: "disk fails",
    atMs: at(random),
    writes: random.int(400),
    syncs: random.int(400),
    short: random.int(600),
    ms: random.skewed(100, 6000),
  }),
  (random) => ({
    kind: "slow disk",
    atMs: at(random),
    syncMs: random.skewed(5, 900),
    ms: random.skewed(100, 6000),
  }),
  (random) => ({ kind: "index removed", atMs: at(random) }),
  (random, channels) => ({
    kind: "upstream down",
    atMs: at(random),
    channel: random.pick(channels).name,
    how: random.pick(["ECONNREFUSED", "silent", "ENOTFOUND"]),
    ms: random.skewed(100, 9000),
  }),
];

function makeHappenings(random: Random, channels: readonly ChannelPlan[]): Happening[] {
  if (random.chance(350)) return [];
  // Each run has a few kinds, some of them several times.
  const kinds = KINDS.filter((_, index) => random.chance(index < DEATHS ? 320 : 180));
  const happenings = kinds.flatMap((make) =>
    Array.from({ length: random.between(1, 3) }, () => make(random, channels)),
  );
  return happenings.sort((a, b) => a.atMs - b.atMs);
}

/** In some runs, many clients with one key send requests at once. Each request costs about as much as the key may spend. */
function addRush(plan: Plan): Plan {
  const random = new Random(plan.seed, "rush");
  const [first] = plan.clients;
  if (!random.chance(150) || first === undefined) return plan;
  const limits = random.chance(500) ? { usdTotal: "0.002" } : { concurrentRequests: 2 };
  const clients = plan.clients.map((client): ClientPlan => {
    if (client.dialect !== first.dialect) return client;
    const requests = client.requests.map((request): RequestPlan => {
      const answers = request.answers.map((answer) => ({ ...answer, output: random.between(200, 400) }));
      return { ...request, maxTokens: 400, gapMs: random.skewed(0, 60), answers };
    });
    return { ...client, key: first.name, limits, startMs: 0, requests };
  });
  return { ...plan, clients };
}

/** In some runs, upstreams are broken or dishonest. What they count may be above any limit, so keys have no limits. */
function addOddAnswers(plan: Plan): Plan {
  const random = new Random(plan.seed, "odd answers");
  if (!random.chance(150) || plan.clients.some(({ limits }) => Object.keys(limits).length > 0)) return plan;
  const change = (answer: AnswerPlan): AnswerPlan =>
    answer.kind === "answer" && random.chance(600) ? { ...answer, kind: "odd answer" } : answer;
  const clients = plan.clients.map((client) => ({
    ...client,
    requests: client.requests.map((request) => ({ ...request, answers: request.answers.map(change) })),
  }));
  return { ...plan, clients };
}

/** In some runs, the power is cut while syncs take long, so that much is written during each of them. */
function addSlowCut(plan: Plan): Plan {
  const random = new Random(plan.seed, "slow cut");
  if (!random.chance(120)) return plan;
  const atMs = random.skewed(20, 2000);
  const slow = { kind: "slow disk", atMs, syncMs: random.between(100, 900), ms: 6000 } as const;
  const cutMs = atMs + random.between(200, 3000);
  const cut = { kind: "cut power", atMs: cutMs, afterSteps: random.between(1, 20), downMs: 500 } as const;
  return addHappenings(plan, [slow, cut]);
}

/** In some runs, many syncs fail, and the gateway is stopped meanwhile or the power is cut later. */
function addFailingStop(plan: Plan): Plan {
  const random = new Random(plan.seed, "failing stop");
  if (!random.chance(120)) return plan;
  const atMs = random.skewed(20, 3000);
  const syncs = random.between(400, 1000);
  const ms = random.pick([400, 5000]);
  const fails = { kind: "disk fails", atMs, writes: 0, syncs, short: 0, ms } as const;
  const afterMs = atMs + ms + random.between(500, 4000);
  const cut = { kind: "cut power", atMs: afterMs, afterSteps: random.between(1, 20), downMs: 500 } as const;
  if (ms < 1000) return addHappenings(plan, [fails, cut]);
  const stopMs = atMs + random.between(50, 2000);
  const stop = { kind: "stop", atMs: stopMs, graceMs: random.between(1, 1000), downMs: 500 } as const;
  return addHappenings(plan, [fails, stop]);
}

function addHappenings(plan: Plan, more: readonly Happening[]): Plan {
  return { ...plan, happenings: [...plan.happenings, ...more].sort((a, b) => a.atMs - b.atMs) };
}
