// What only a few runs have. Each addition has random numbers of its own.

import { GOOD_ANSWER } from "../upstreams/upstream.ts";
import { Random } from "../world/random.ts";
import {
  type AnswerPlan,
  type ChannelPlan,
  type ClientPlan,
  type Happening,
  type Plan,
  platformOf,
  type RequestPlan,
  USD_LIMITS,
} from "./plan.ts";

export function addRarities(plan: Plan): Plan {
  const changed = addFailovers(addUnknownCosts(addSlowCut(addKeysOff(addRareAnswers(plan)))));
  const more = addKilledSuccessor(addFailingStop(addCrowds(addCutFetches(addMonths(changed)))));
  const most = addImpatience(addPieces(addZone(addGroupLimits(addHugeAnswers(more)))));
  return addMutations(addLeavers(addEstimates(addRefusedTurns(addLoops(addNames(addCredentials(most)))))));
}

/** In some runs, upstreams are broken or dishonest: texts, counts and lists in their answers are something else. */
function addMutations(plan: Plan): Plan {
  const random = new Random(plan.seed, "mutations");
  if (!random.chance(60)) return plan;
  return changeRequests(plan, (request) =>
    request.background
      ? request
      : {
          ...request,
          answers: request.answers.map((answer) =>
            random.chance(500) ? { ...answer, mutated: random.int(1_000_000) } : answer,
          ),
        },
  );
}

/** In some runs, the only channel of a few clients is in a cooldown, and each second request leaves while it tries it. */
function addLeavers(plan: Plan): Plan {
  const random = new Random(plan.seed, "leavers");
  if (!random.chance(50)) return plan;
  const own = plan.channels.filter(({ platform }) => platform === platformOf(plan.clients[0]!.dialect));
  const clients = plan.clients
    .slice(0, 1)
    .map((client): ClientPlan => ({ ...client, socket: null, retries: 0 }));
  const changed = changeRequests({ ...plan, channels: own.slice(0, 1), clients }, (request) => {
    const refused: AnswerPlan = { ...GOOD_ANSWER, kind: "error status", status: 401 };
    const leave = { how: "fin", afterBytes: 1e9, afterMs: random.between(30, 300) } as const;
    // The one that left is forgotten by then, and its trial would still run.
    const gapMs = random.between(600, 1200);
    return request.number % 2 === 0
      ? { ...request, gapMs, leave: null, answers: [refused] }
      : { ...request, gapMs, leave, answers: [{ ...GOOD_ANSWER, kind: "silence" }] };
  });
  return { ...changed, drainMs: 0, happenings: [] };
}

/** In some runs, limits count estimates of large background responses until their cost is known. */
function addEstimates(plan: Plan): Plan {
  const random = new Random(plan.seed, "estimates");
  if (!random.chance(80)) return plan;
  const clients = plan.clients.map((client): ClientPlan => {
    if (client.dialect !== "responses" || client.socket) return client;
    const requests = client.requests.map((request): RequestPlan => {
      const background = { readyMs: 1, pollMs: random.between(20, 100), again: false };
      const promptBytes = random.between(500, 5000);
      return { ...request, stream: false, bad: null, leave: null, promptBytes, background };
    });
    return { ...client, limits: { ...client.limits, usdTotal: random.pick(USD_LIMITS) }, requests };
  });
  return { ...plan, clients };
}

/** In some runs, upstreams refuse a response on a WebSocket while the one before it runs on the same stream. */
function addRefusedTurns(plan: Plan): Plan {
  const random = new Random(plan.seed, "refused turns");
  if (!random.chance(250)) return plan;
  const refused: AnswerPlan = { ...GOOD_ANSWER, kind: "error status", status: random.pick([400, 429, 500]) };
  const changed = changeRequests(plan, (request, { socket, requests }) => {
    if (!socket) return request;
    const running = { ...GOOD_ANSWER, output: 20, paceMs: random.between(2, 30) };
    return { ...request, leave: null, answers: [requests.indexOf(request) % 2 === 0 ? running : refused] };
  });
  const clients = changed.clients.map((client): ClientPlan =>
    client.socket
      ? { ...client, pipelined: true, retries: 0, socket: { ...client.socket, streams: 1 } }
      : client,
  );
  return { ...changed, clients };
}

/** The requests of a plan that fit, changed. */
function changeRequests(plan: Plan, change: (request: RequestPlan, client: ClientPlan) => RequestPlan): Plan {
  const clients = plan.clients.map((client): ClientPlan => {
    const requests = client.requests.map((request) =>
      request.background || request.bad !== null ? request : change(request, client),
    );
    return { ...client, requests };
  });
  return { ...plan, clients };
}

function addHappenings(plan: Plan, more: readonly Happening[]): Plan {
  return { ...plan, happenings: [...plan.happenings, ...more].sort((a, b) => a.atMs - b.atMs) };
}

/** In some runs, agents are in a loop, and their keys have a limit for that. */
function addLoops(plan: Plan): Plan {
  const random = new Random(plan.seed, "stops");
  if (!random.chance(100)) return plan;
  const sameCall = random.between(2, 4);
  const loops = changeRequests(plan, (request) =>
    random.chance(500) ? { ...request, pairs: random.between(1, 5) } : request,
  );
  const clients = loops.clients.map((client): ClientPlan => ({
    ...client,
    limits: { ...client.limits, sameCall },
  }));
  return { ...loops, clients };
}

/** In some runs, models have aliases, converted answers end at a cap, and channels speak TLS. */
function addNames(plan: Plan): Plan {
  const random = new Random(plan.seed, "names");
  if (!random.chance(150)) return plan;
  const channels = plan.channels.map((channel): ChannelPlan => ({ ...channel, tls: random.chance(500) }));
  const secure = channels.filter(({ tls }) => tls);
  const expired = secure.slice(0, random.int(2)).map(({ name: channel }): Happening => {
    const atMs = random.skewed(1, 4000);
    return { kind: "upstream down", atMs, channel, how: "bad certificate", ms: random.skewed(100, 5000) };
  });
  // A config of more than 8 KiB would be checked by another thread.
  let aliases = 12;
  const named = changeRequests(plan, (request) => ({
    ...request,
    aliased: random.chance(40) && aliases-- > 0,
    answers: request.answers.map((answer) => ({ ...answer, incomplete: random.chance(300) })),
  }));
  return addHappenings({ ...named, channels }, expired);
}

/** In some runs, an upstream gets a new credential, and the config has it a little later. */
function addCredentials(plan: Plan): Plan {
  const random = new Random(plan.seed, "credentials");
  if (!random.chance(100)) return plan;
  const { name: channel } = random.pick(plan.channels);
  const atMs = random.skewed(20, 4000);
  return addHappenings(plan, [{ kind: "credential changed", atMs, channel, ms: random.between(800, 4500) }]);
}

/** In some runs, an editor writes the config in two pieces, just when the gateway looks at it. */
function addPieces(plan: Plan): Plan {
  const random = new Random(plan.seed, "pieces");
  if (!random.chance(150)) return plan;
  const pieces = { kind: "config in two pieces", atMs: random.skewed(20, 3000) } as const;
  return addHappenings(plan, [pieces]);
}

/** Moments shortly before the clocks are changed, or a day ends in a zone with daylight saving. */
const CLOCK_CHANGES = [
  ["Europe/Berlin", "2027-03-27T22:59:50Z"],
  ["Europe/Berlin", "2027-03-28T00:59:50Z"],
  ["America/New_York", "2026-11-01T03:59:50Z"],
  ["Australia/Lord_Howe", "2027-04-03T14:59:45Z"],
] as const;

function addZone(plan: Plan): Plan {
  const random = new Random(plan.seed, "zone");
  if (!random.chance(120)) return plan;
  const [zone, wall] = random.pick(CLOCK_CHANGES);
  return { ...plan, zone, wall: Date.parse(wall) };
}

/** In some runs, groups have limits, and their channels have weights. The clock may be set back. */
function addGroupLimits(plan: Plan): Plan {
  const random = new Random(plan.seed, "groups");
  if (!random.chance(150)) return plan;
  const platforms = [...new Set(plan.clients.map(({ dialect }) => platformOf(dialect)))];
  const limits = platforms.map((platform) => {
    const usd = { usdTotal: random.pick(USD_LIMITS) };
    const count = random.chance(500)
      ? { requestsPerMinute: random.between(5, 30) }
      : { concurrentRequests: random.between(1, 4) };
    return [platform, random.chance(500) ? usd : count] as const;
  });
  const channels = plan.channels.map((channel): ChannelPlan => ({
    ...channel,
    weight: random.between(1, 5),
  }));
  const back = { kind: "clock", atMs: random.skewed(300, 4000), byMs: -3_600_000 } as const;
  const happenings = random.chance(250) ? [back] : [];
  return addHappenings({ ...plan, channels, groupLimits: Object.fromEntries(limits) }, happenings);
}

/** In some runs, a few answers are larger than what is held without a reservation of memory, and most of these are cut, or
 *  they are streams to slow readers. */
function addHugeAnswers(plan: Plan): Plan {
  const random = new Random(plan.seed, "huge");
  if (!random.chance(100)) return plan;
  const isStream = random.chance(400);
  const clients = plan.clients.map((client): ClientPlan => {
    const requests = client.requests.map((request, index): RequestPlan => {
      if (index !== 2 || request.bad !== null || request.background) return request;
      const padding = random.between(1_500_000, 2_000_000);
      const framing = random.pick<"length" | "chunked">(["length", "chunked"]);
      const plain: AnswerPlan = { ...GOOD_ANSWER, padding, framing, echoes: random.chance(300) };
      const how = random.pick<"fin" | "rst">(["fin", "rst"]);
      const cut = { atPerMille: random.between(isStream ? 0 : 700, 1000), how };
      const answer = random.chance(isStream ? 100 : 600) ? { ...plain, cut } : plain;
      const slow = isStream ? { everyBytes: 60_000, ms: random.between(20, 100) } : null;
      return { ...request, stream: isStream, leave: null, slow, answers: [answer] };
    });
    return { ...client, requests };
  });
  const weather = { ...plan.weather, window: isStream ? 1 << 16 : 1 << 20, piece: 0 };
  return { ...plan, weather, clients };
}

/** In some runs some keys have a limit for each month, and a month may end. */
function addMonths(plan: Plan): Plan {
  const random = new Random(plan.seed, "months");
  if (!random.chance(250)) return plan;
  const limits = new Map(
    plan.clients.flatMap(({ key }) => (random.chance(600) ? [[key, random.pick(USD_LIMITS)] as const] : [])),
  );
  const clients = plan.clients.map((client): ClientPlan => {
    const usdPerMonth = limits.get(client.key);
    return usdPerMonth === undefined ? client : { ...client, limits: { ...client.limits, usdPerMonth } };
  });
  return { ...plan, clients };
}

/** What a few runs have: large answers to slow readers, answers that repeat the credential, and channels that cost nothing
 *  before others that do. */
function addRareAnswers(plan: Plan): Plan {
  const random = new Random(plan.seed, "rarities");
  const large = random.chance(80) ? random.between(50, 250) : 0;
  const echoing = random.chance(120) ? random.between(50, 300) : 0;
  const isFree = random.chance(80);
  const lag = random.chance(250) ? { lag: random.between(5000, 40_000) } : {};
  // In small pieces, one large answer would be most of a run.
  const weather =
    large > 0
      ? { ...plan.weather, window: random.pick([1 << 20, 1 << 20, 1 << 16]), piece: 0 }
      : { ...plan.weather, ...lag };
  const change = (answer: AnswerPlan): AnswerPlan => ({
    ...answer,
    ...(large > 0 && random.chance(large) ? { padding: random.between(200_000, 600_000), paceMs: 0 } : {}),
    ...(echoing > 0 && random.chance(echoing) ? { echoes: true } : {}),
  });
  const clients = plan.clients.map((client): ClientPlan => {
    const requests = client.requests.map((request): RequestPlan => {
      if (large + echoing === 0) return request;
      const answers = request.answers.map(change);
      const isLarge = answers.some(({ padding = 0 }) => padding > 0);
      const slow = isLarge
        ? { everyBytes: random.between(1, 2000), ms: random.skewed(1, 800) }
        : request.slow;
      return { ...request, slow, answers };
    });
    return { ...client, requests };
  });
  const changed = addHappenings({ ...plan, clients, weather }, makePairs(random, plan.channels));
  return isFree ? addFreeChannels(changed, random) : changed;
}

/** What rarely happens so soon after something else: a kill after a command, and a clock that is set back while a channel
 *  is in cooldown. */
function makePairs(random: Random, channels: readonly ChannelPlan[]): Happening[] {
  const pairs: Happening[] = [];
  const atMs = random.skewed(20, 3000);
  const soonMs = atMs + random.between(50, 1800);
  const { name: channel } = random.pick(channels);
  const kill = { kind: "kill", atMs: soonMs, afterSteps: 1, downMs: random.skewed(1, 1000) } as const;
  if (random.chance(50)) pairs.push({ kind: "command", atMs, channel, action: "disable" }, kill);
  const away = { kind: "upstream down", atMs, channel, how: "ECONNREFUSED", ms: 4000 } as const;
  if (random.chance(50)) pairs.push(away, { kind: "clock", atMs: soonMs, byMs: -3_600_000 });
  return pairs;
}

/** In some runs, a key is disabled for so long that its client sends requests meanwhile, best on the same WebSocket. */
function addKeysOff(plan: Plan): Plan {
  const random = new Random(plan.seed, "keys off");
  if (!random.chance(150)) return plan;
  const owners = plan.clients.filter(({ name, key }) => name === key);
  const onSockets = owners.filter(({ socket }) => socket);
  const { name: own, startMs } = random.pick(onSockets.length > 0 ? onSockets : owners);
  const steady = changeRequests(plan, (request, { name }) => {
    const gapMs = random.between(150, 500);
    return name === own ? { ...request, gapMs, leave: null, slow: null, answers: [GOOD_ANSWER] } : request;
  });
  const clients = steady.clients.map((client): ClientPlan => {
    const socket = client.socket ? { ...client.socket, renewAfter: 1000 } : null;
    return client.name === own ? { ...client, socket } : client;
  });
  const atMs = startMs + random.between(300, 1500);
  const off = { kind: "key off", atMs, client: own, ms: random.between(6000, 9000) } as const;
  const happenings = random.chance(500) ? [] : plan.happenings;
  return addHappenings({ ...plan, clients, happenings }, [off]);
}

/** In some runs, the first requests of each client cost something that nobody knows, and then the gateway is killed. */
function addUnknownCosts(plan: Plan): Plan {
  const random = new Random(plan.seed, "unknown costs");
  if (!random.chance(60)) return plan;
  const clients = plan.clients.map((client): ClientPlan => {
    const { background: _, ...first } = client.requests[0]!;
    const answer = { ...first.answers[0]!, kind: "silence" } as const;
    const leave = { how: "fin", afterBytes: 1e9, afterMs: random.between(20, 300) } as const;
    const unanswered: RequestPlan = { ...first, promptBytes: 9000, leave, bad: null, answers: [answer] };
    return {
      ...client,
      limits: { ...client.limits, usdTotal: "0.0005" },
      requests: [unanswered, ...client.requests.slice(1)],
    };
  });
  const kill = { kind: "kill", atMs: random.between(2000, 5000), afterSteps: 1, downMs: 200 } as const;
  return addHappenings({ ...plan, clients }, [kill]);
}

/** In some runs, the first channel refuses most requests, the second one is silent, channels are enabled meanwhile, and then
 *  the gateway is killed. */
function addFailovers(plan: Plan): Plan {
  const random = new Random(plan.seed, "failovers");
  if (!random.chance(60)) return plan;
  const channels = plan.channels.map((channel): ChannelPlan => ({ ...channel, priority: 1 }));
  const clients = plan.clients.map((client): ClientPlan => {
    const requests = client.requests.map((request): RequestPlan => {
      const first = request.answers[0]!;
      const answers = [
        { ...first, kind: "error status", status: 503, cut: null, delayMs: 1, paceMs: 0 },
        { ...first, kind: "silence" },
      ] as const;
      return random.chance(300) && !request.background ? { ...request, leave: null, answers } : request;
    });
    return { ...client, requests };
  });
  const kill = { kind: "kill", atMs: random.between(1000, 4000), afterSteps: 1, downMs: 200 } as const;
  const enabled = [...channels, ...channels].map(({ name: channel }): Happening => {
    return { kind: "command", atMs: random.between(50, 1500), channel, action: "enable" };
  });
  const attempts = Math.max(2, plan.attempts);
  return addHappenings({ ...plan, attempts, channels, clients }, [kill, ...enabled]);
}

/** In some runs, many requests find only silent upstreams, and all attempts together may take little longer than one. */
function addImpatience(plan: Plan): Plan {
  const random = new Random(plan.seed, "impatience");
  if (!random.chance(80)) return plan;
  const clients = plan.clients.map((client): ClientPlan => {
    const requests = client.requests.map((request): RequestPlan => {
      if (request.background || !random.chance(100)) return request;
      const answer: AnswerPlan = { ...GOOD_ANSWER, kind: "silence" };
      return { ...request, leave: null, answers: [answer, answer, answer] };
    });
    return { ...client, requests };
  });
  return { ...plan, attempts: 4, totalSeconds: 14, clients };
}

/** In some runs, all clients of a platform share a key that may have only one or two requests at once, and most answers
 *  take so long that more are wanted. */
function addCrowds(plan: Plan): Plan {
  const random = new Random(plan.seed, "crowds");
  if (!random.chance(80)) return plan;
  const [first] = plan.clients;
  const platform = platformOf(first!.dialect);
  const limits = { ...first!.limits, concurrentRequests: random.between(1, 2) };
  const slower = (answer: AnswerPlan): AnswerPlan => ({ ...answer, delayMs: random.between(50, 300) });
  const clients = plan.clients.map((client): ClientPlan => {
    if (platformOf(client.dialect) !== platform) return client;
    const requests = client.requests.map((request): RequestPlan => {
      const answers = request.answers.map(slower);
      return { ...request, answers };
    });
    return { ...client, key: first!.name, limits, requests };
  });
  return { ...plan, clients };
}

/** In some runs, much of what clients fetch of background responses is cut. Only its framing shows that. */
function addCutFetches(plan: Plan): Plan {
  const random = new Random(plan.seed, "cut fetches");
  if (!random.chance(300)) return plan;
  const clients = plan.clients.map((client): ClientPlan => {
    if (client.dialect !== "responses" || client.socket) return client;
    const requests = client.requests.map((request): RequestPlan => {
      if (request.bad !== null || !random.chance(500)) return request;
      const background = { readyMs: 1, pollMs: random.between(20, 200), again: true };
      const begun: AnswerPlan = { ...GOOD_ANSWER, output: random.between(1, 40) };
      const answers = [begun, cutAnywhere(begun, random), cutAnywhere(begun, random)];
      return { ...request, stream: false, leave: null, background, answers };
    });
    return { ...client, requests };
  });
  return { ...plan, clients };
}

function cutAnywhere(answer: AnswerPlan, random: Random): AnswerPlan {
  const cut = { atPerMille: random.between(0, 1000), how: random.pick<"fin" | "rst">(["fin", "rst"]) };
  return { ...answer, framing: random.pick(["length", "chunked"]), cut };
}

/** In some runs, the power is cut while syncs take long, so that much is written during each of them. */
function addSlowCut(plan: Plan): Plan {
  const random = new Random(plan.seed, "slow cut");
  if (plan.sync === "never" || !random.chance(120)) return plan;
  const atMs = random.skewed(20, 2000);
  const slow = { kind: "slow disk", atMs, syncMs: random.between(100, 900), ms: 6000 } as const;
  const cutMs = atMs + random.between(200, 3000);
  const cut = { kind: "cut power", atMs: cutMs, afterSteps: random.between(1, 20), downMs: 500 } as const;
  return addHappenings(plan, [slow, cut]);
}

/** In some runs, many syncs fail. Meanwhile the gateway is stopped, or later the power is cut. */
function addFailingStop(plan: Plan): Plan {
  const random = new Random(plan.seed, "failing stop");
  if (plan.sync === "never" || !random.chance(120)) return plan;
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

/** In some runs, the ledger is moved away while the gateway is down, and the one that goes on without it is killed soon. */
function addKilledSuccessor(plan: Plan): Plan {
  const random = new Random(plan.seed, "killed successor");
  if (!random.chance(60)) return plan;
  const atMs = random.skewed(20, 2000);
  const kill = { kind: "kill", atMs, afterSteps: random.between(1, 20), downMs: 300 } as const;
  const moved = { kind: "ledger moved", atMs: atMs + 200 } as const;
  const again = random.chance(700)
    ? ({ ...kill, kind: "kill at start", atMs: atMs + 250 } as const)
    : { ...kill, atMs: atMs + random.between(302, 700) };
  return addHappenings(plan, [kill, moved, again]);
}

/** The first channel of a platform costs nothing and is often away. The next one costs as much as ever. */
function addFreeChannels(plan: Plan, random: Random): Plan {
  const firsts = new Set(
    plan.channels.filter(({ name, platform }) => name === `${platform}0`).map(({ name }) => name),
  );
  const channels = plan.channels.map((channel): ChannelPlan =>
    firsts.has(channel.name) ? { ...channel, priority: 1, free: true } : { ...channel, priority: 2 },
  );
  const clients = plan.clients.map((client): ClientPlan => {
    const usdTotal = random.pick(USD_LIMITS);
    const requests = client.requests.map((request): RequestPlan => ({
      ...request,
      maxTokens: request.maxTokens ?? 50,
    }));
    return { ...client, limits: { ...client.limits, usdTotal }, requests };
  });
  const away = [...firsts].map((channel): Happening => ({
    kind: "upstream down",
    atMs: random.skewed(1, 3000),
    channel,
    how: "ECONNREFUSED",
    ms: random.skewed(500, 20_000),
  }));
  return {
    ...plan,
    attempts: Math.max(2, plan.attempts),
    channels,
    clients,
    happenings: [...plan.happenings, ...away],
  };
}
