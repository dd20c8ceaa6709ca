// Runs a plan in a world of its own, and collects the failures. Only the plan and the code decide what happens.

import type { Check } from "./checks/promises.ts";
import { checkBooks } from "./checks/books.ts";
import { checkBytes } from "./checks/bytes.ts";
import { checkReleased, checkStopped, checkTimersEnded } from "./checks/released.ts";
import { checkDelivered } from "./checks/delivered.ts";
import { checkResent } from "./checks/resent.ts";
import { happen } from "./happenings.ts";
import { Client } from "./clients/client.ts";
import type { Send } from "./clients/send.ts";
import type { ClientPlan, Plan, RequestPlan } from "./plan/plan.ts";
import type { Served } from "./program.ts";
import { answerRequest, type Arrival, GOOD_ANSWER } from "./upstreams/upstream.ts";
import { CONFIG, LEDGER, writeConfig } from "./world/config.ts";
import { Disk, type Inode } from "./world/disk.ts";
import { makeListen } from "./world/client-side.ts";
import { Network } from "./world/network.ts";
import { Killed, type Program, type ProgramExports, SimProcess } from "./world/process.ts";
import { Random } from "./world/random.ts";
import { NATURE, Scheduler, Trace } from "./world/scheduler.ts";
import { makeUpstream } from "./world/upstream-side.ts";

export interface Accusation {
  readonly check: Check;
  readonly text: string;
}

export interface Outcome {
  readonly accusations: readonly Accusation[];
  /** The hash of the trace. Equal runs have equal hashes. */
  readonly digest: string;
  readonly sends: number;
  readonly events: number;
  readonly kills: number;
  readonly powerCuts: number;
}

/** A line as it was written to the disk. */
export interface Written {
  readonly id: string;
  readonly at: number;
  readonly process: SimProcess;
  readonly inode: Inode;
  /** How many changes the file has had, this write included. */
  readonly made: number;
}

/** When a sync of a file has ended, the file's first `made` changes are safe. */
export interface Sync {
  readonly process: SimProcess;
  readonly inode: Inode;
  readonly made: number;
  readonly from: number;
  /** When the sync ended. Infinite: the sync failed, or its process died before the end. */
  to: number;
}

/** When and how a gateway died. */
export interface Death {
  readonly at: number;
  readonly how: "killed" | "without power";
  readonly process: SimProcess;
}

const SECOND = 1_000_000;
const MAX_EVENTS = 3_000_000;
const MAX_US = 3600 * SECOND;
/** The longest cooldown that the gateway chooses (docs/failures.md). No upstream here asks for more. */
const LONGEST_COOLDOWN_US = 10 * 60 * SECOND;
const FINAL = 100;
const FINAL_NUMBER = 900_000;

export class World {
  readonly plan: Plan;
  readonly seed: number;
  readonly scheduler: Scheduler;
  readonly network: Network;
  readonly disk: Disk;
  wallOffset: number;
  readonly sends: Send[] = [];
  readonly arrivals: Arrival[] = [];
  readonly bySend = new Map<string, Arrival[]>();
  readonly byRequest = new Map<string, Arrival[]>();
  readonly sendsByName = new Map<string, Send>();
  readonly requests = new Map<string, RequestPlan>();
  readonly accusations: Accusation[] = [];
  readonly written: Written[] = [];
  readonly syncs: Sync[] = [];
  readonly deaths: Death[] = [];
  /** When a gateway began to serve. */
  readonly boots: number[] = [];
  /** For each request id, the name of the send whose answer had it. */
  readonly ids = new Map<string, string>();
  /** Whether a process was suspended. */
  stoodStill = false;
  /** When the clock was changed. */
  readonly bends: Array<{ readonly at: number; readonly byMs: number }> = [];
  /** Whether the gateway stopped at the end of the run, when it was asked to. */
  stopped = false;
  process: SimProcess | null = null;
  served: Served | null = null;
  readonly #make: Program;
  readonly #trace: Trace;
  /** Whether all faults are over, so that everything works again. */
  isHealed = false;
  #ending = false;
  #left = 0;
  #boots = 0;
  #restartPending = false;

  constructor(plan: Plan, make: Program, onLine: ((line: string) => void) | null) {
    this.plan = plan;
    this.seed = plan.seed;
    this.#make = make;
    this.wallOffset = plan.wall;
    this.#trace = new Trace(onLine);
    this.scheduler = new Scheduler(new Random(plan.seed, "scheduler"), this.#trace);
    this.scheduler.onThrow = (owner, error) => this.#caught(owner.name, error);
    this.network = new Network(this.scheduler, plan.seed);
    this.network.weatherOf = (name) => this.#weatherOf(name);
    this.disk = new Disk(new Random(plan.seed, "disk"));
    for (const client of plan.clients)
      for (const [index, request] of client.requests.entries())
        this.requests.set(`${client.name}r${index}`, request);
  }

  run(): Outcome {
    const config = this.disk.create(CONFIG, "file", 0o600, this.wallOffset);
    config.write(0, Buffer.from(writeConfig(this.plan)));
    this.disk.sync(config);
    for (const channel of this.plan.channels)
      this.network.addUpstream(`${channel.name}.test`, (arriving) => answerRequest(this, channel, arriving));
    this.#boot();
    this.#start(this.plan.clients);
    for (const happening of this.plan.happenings)
      this.scheduler.after(happening.atMs * 1000, NATURE, happening.kind, () => happen(this, happening));
    const last = Math.max(0, ...this.plan.happenings.map(({ atMs }) => atMs * 1000));
    if (this.#until(() => this.#left === 0 && this.scheduler.now >= last)) {
      this.#heal();
      this.#finalRequests();
      checkReleased(this);
      this.#stop();
    } else {
      this.accuse("hangs", `After ${MAX_US / SECOND} s, ${this.#left} clients still have something to do.`);
    }
    this.#checkAll();
    const deaths = (how: Death["how"]): number => this.deaths.filter((death) => death.how === how).length;
    return {
      accusations: this.accusations,
      digest: this.#trace.digest(),
      sends: this.sends.length,
      events: this.scheduler.steps,
      kills: deaths("killed"),
      powerCuts: deaths("without power"),
    };
  }

  accuse(check: Check, text: string): void {
    if (this.accusations.length > 50) return;
    // The trace has no stack: it would depend on where the project is.
    this.scheduler.note(`FAILED ${check}: ${text.split("\n", 1).join()}`);
    this.accusations.push({ check, text });
  }

  wrote(process: SimProcess, path: string, inode: Inode, bytes: Uint8Array): void {
    if (!path.endsWith(".jsonl")) return;
    const place = { at: this.scheduler.now, process, inode, made: inode.made };
    const lines = Buffer.from(bytes)
      .toString()
      .matchAll(/^\{"v":1,"id":"([^"]+)".*\}$/gm);
    for (const [, id = ""] of lines) this.written.push({ id, ...place });
  }

  beginSync(process: SimProcess, inode: Inode): () => void {
    const { scheduler } = this;
    const { made } = inode;
    const sync: Sync = { process, inode, made, from: scheduler.now, to: Number.POSITIVE_INFINITY };
    this.syncs.push(sync);
    return () => void (sync.to = scheduler.now);
  }

  /** Called if a promise was rejected and nothing handled it, or a listener of an AbortSignal threw. That would end
   *  the real process. */
  reject(error: unknown): void {
    if (error instanceof Killed) return;
    this.accuse(
      "crash",
      `An error was thrown, or a promise rejected, and nothing handled it: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`,
    );
  }

  /** Runs events until `reached()` is true. Returns false if too much time passes or too many events run. */
  #until(reached: () => boolean, within = MAX_US): boolean {
    const end = this.scheduler.now + within;
    while (!reached()) {
      if (this.scheduler.steps > MAX_EVENTS) {
        this.accuse("hangs", `The events did not stop: there were more than ${MAX_EVENTS}.`);
        return false;
      }
      if (!this.scheduler.step(end)) {
        if (this.scheduler.now < end) this.scheduler.now = end;
        return reached();
      }
    }
    return true;
  }

  #pass(us: number): void {
    this.#until(() => false, us);
  }

  #weatherOf(name: string): Plan["weather"] {
    const random = new Random(this.seed, name, "weather");
    const { latency, window, piece } = this.plan.weather;
    return {
      latency: Math.max(4, random.between(latency >> 1, latency * 2)),
      window,
      // Only some connections cut bytes into pieces, because this takes much of a run's time.
      piece: random.chance(350) ? piece : 0,
    };
  }

  #caught(owner: string, error: unknown): void {
    if (error instanceof Killed || (owner === this.process?.name && this.process.dead)) return;
    const text = error instanceof Error ? (error.stack ?? error.message) : String(error);
    if (owner === NATURE.name) throw error;
    this.accuse("crash", `The gateway threw an error that nothing caught: ${text}`);
  }

  #boot(): void {
    this.#restartPending = false;
    if (this.process !== null && !this.process.dead) return;
    const process = new SimProcess(this, `gateway${this.#boots}`, 1000 + this.#boots);
    this.#boots++;
    this.process = process;
    this.served = null;
    this.#ending = false;
    process.onDeath = () => this.#noteOrphans();
    try {
      const network = { listen: makeListen(process), createClient: () => makeUpstream(process) };
      this.served = this.#load(process).serve(CONFIG, this.#observe(process), network);
      this.boots.push(this.scheduler.now);
    } catch (error) {
      this.#failedBoot(process, error);
    }
  }

  #failedBoot(process: SimProcess, error: unknown): void {
    if (error instanceof Killed || process.dead) return;
    const text = error instanceof Error ? error.message : String(error);
    this.scheduler.note(`${process.name} does not start: ${text}`);
    const { failingWrites, failingSyncs, room } = this.disk.trouble;
    const isTroubled = failingWrites > 0 || failingSyncs > 0 || room < 1e9;
    if (!isTroubled || !/ENOSPC|EIO|SQLITE_(?:FULL|IOERR)/.test(text))
      this.accuse(
        "boot",
        `The gateway does not start: ${error instanceof Error ? (error.stack ?? text) : text}`,
      );
    process.kill("killed");
    this.#restartSoon(1000);
  }

  #observe(process: SimProcess): Parameters<ProgramExports["serve"]>[1] {
    return {
      notice: (level, text) => {
        if (process.dead) return;
        this.scheduler.note(`${process.name} says (${level}): ${text}`);
        if (/failed inside|does not replace/.test(text) && !text.includes("this process is dead"))
          this.accuse("crash", text);
      },
    };
  }

  /** Marks the requests that were in flight when the gateway died: they get no answer. */
  #noteOrphans(): void {
    for (const send of this.sends) if (send.end === "open") send.orphaned = true;
  }

  #restartSoon(ms: number): void {
    if (this.#restartPending) return;
    this.#restartPending = true;
    this.scheduler.after(ms * 1000, NATURE, "the gateway is started again", () => this.#boot());
  }

  dieSoon(how: Death["how"], afterSteps: number, downMs: number): void {
    const { process } = this;
    if (process === null || process.dead || this.isHealed) return;
    process.killAtStep = process.steps + afterSteps;
    process.killHow = how;
    process.onDeath = () => {
      this.#noteOrphans();
      this.scheduler.note(how);
      this.deaths.push({ at: this.scheduler.now, how, process });
      if (how === "without power") this.disk.cutPower();
      this.#restartSoon(downMs);
    };
    // An idle gateway makes no steps, so it is killed after two seconds.
    this.scheduler.after(2 * SECOND, NATURE, "the end", () => process.kill(how));
  }

  stopGateway(graceMs: number, downMs: number): void {
    const { process, served } = this;
    if (process === null || process.dead || served === null || this.#ending) return;
    this.#ending = true;
    served.stop(graceMs).then(
      () => {
        this.#ending = false;
        if (process.dead) return;
        this.scheduler.note("the gateway has stopped");
        process.onDeath = null;
        process.kill("killed");
        this.#restartSoon(downMs);
      },
      (error: unknown) => {
        this.#ending = false;
        if (!process.dead) this.accuse("stop", `The gateway does not stop: ${String(error)}`);
      },
    );
    this.scheduler.after((graceMs + 10_000) * 1000, NATURE, "is it down?", () => {
      if (this.process !== process) return;
      if (this.#ending && !process.dead && process.frozenUntil < this.scheduler.now - 10 * SECOND)
        this.accuse("stop", `The gateway did not stop within its grace of ${graceMs} ms and 10 s more.`);
      this.#ending = false;
    });
  }

  #load(process: SimProcess): ProgramExports {
    return process.load(this.#make);
  }

  /** Runs `gateway ledger verify` in a process of its own, and returns its findings. */
  verifyLedger(): string[] {
    return this.#load(new SimProcess(this, "verify", 6000)).verify(LEDGER);
  }

  #start(clients: readonly ClientPlan[]): void {
    for (const plan of clients) {
      this.#left++;
      const client = new Client(plan, this.network, {
        sent: (send) => {
          this.sends.push(send);
          this.sendsByName.set(send.name, send);
        },
        done: () => void this.#left--,
        ended: (send) => this.#ended(send),
      });
      client.start();
    }
  }

  #ended(send: Send): void {
    checkBytes(this, send);
    if (send.end === "gave up" && !this.stoodStill && !send.orphaned && send.request.slow === null)
      this.accuse(
        "hangs",
        `The reply to ${send.name} did not end within 150 s, which is longer than every time limit.`,
      );
  }

  /** Ends all faults, and waits until everything works again. */
  #heal(): void {
    this.scheduler.note("everything works again");
    this.isHealed = true;
    this.disk.heal();
    this.network.lost.clear();
    this.#pass(Math.max(0, (this.process?.frozenUntil ?? 0) - this.scheduler.now));
    this.#until(() => !this.#ending, 60 * SECOND);
    // A death that is planned for later still comes.
    const { process } = this;
    this.#until(
      () => process === null || process.dead || process.killAtStep === Number.POSITIVE_INFINITY,
      3 * SECOND,
    );
    this.#until(() => this.process !== null && !this.process.dead && this.served !== null, 120 * SECOND);
    this.#pass(3 * SECOND);
    this.#until(() => this.arrivals.every(({ endedAt }) => endedAt < this.scheduler.now), 60 * SECOND);
    this.#pass(20 * SECOND);
    const isResting = (): boolean => {
      const { gateway } = this.served?.running ?? {};
      if (gateway === undefined) return false;
      return gateway.channels.view(gateway.catalog, gateway.now()).some(({ until }) => until !== null);
    };
    if (isResting() && !this.#until(() => !isResting(), LONGEST_COOLDOWN_US))
      this.accuse(
        "recovery",
        "Everything works, but a channel is in a cooldown that is longer than every other one.",
      );
    if (this.plan.clients.some(({ limits }) => limits.requestsPerMinute !== undefined))
      this.#pass(62 * SECOND);
  }

  /** Each key sends one more request. The request fails if something is still reserved for requests that have ended. */
  #finalRequests(): void {
    const from = this.sends.length;
    let number = FINAL_NUMBER;
    // Only one client of each key sends a request: clients with the same key would block each other.
    const owners = this.plan.clients.filter(({ name, key }) => name === key);
    const clients = owners.map((client, index): ClientPlan => {
      const name = `c${FINAL + index}`;
      const request: RequestPlan = {
        number: number++,
        stream: index % 2 === 0,
        promptBytes: 40,
        maxTokens: 10,
        gapMs: 0,
        leave: null,
        slow: null,
        bad: null,
        answers: [GOOD_ANSWER],
      };
      this.requests.set(`${name}r0`, request);
      return {
        ...client,
        name,
        startMs: index * 50,
        retries: 0,
        requests: [request],
      };
    });
    const arrived = this.arrivals.length;
    this.#start(clients);
    this.#until(() => this.#left === 0, 200 * SECOND);
    for (const send of this.sends.slice(from)) this.#checkFinal(send);
    this.#checkChannels(arrived);
    this.#pass(2 * SECOND);
  }

  #checkFinal(send: Send): void {
    const { reply, end, name, client } = send;
    if (reply?.status === 200 && end === "reply") return;
    if (reply?.status === 429 && this.#isSpent(reply.body.toString())) return;
    this.accuse(
      reply?.status === 429 ? "reservations" : "recovery",
      `Everything works again, but ${name} (${client.dialect}, key ${client.key}) gets ${reply?.status ?? "nothing"}: ${reply?.body.toString().slice(0, 300)}`,
    );
  }

  /** Whether a limit rightly refuses. If the clock was changed, the minute of a rate limit may be longer. */
  #isSpent(text: string): boolean {
    const isEarly = text.includes("requests_per_minute") && (this.bends.length > 0 || this.stoodStill);
    return isEarly || (text.includes("has spent") && !text.includes("reserved"));
  }

  /** Checks that channels are used again after faults. Each platform uses a channel of its best priority. */
  #checkChannels(from: number): void {
    const arrived = this.arrivals.slice(from);
    const used = new Set(arrived.map(({ channel }) => channel));
    for (const platform of new Set(this.plan.clients.map(({ dialect }) => dialect))) {
      const channels = this.plan.channels.filter((channel) => channel.platform === platform);
      // If limits have refused all clients of a platform, none of its channels was used.
      if (!channels.some(({ name }) => used.has(name))) continue;
      const best = Math.min(...channels.map(({ priority }) => priority));
      const first = channels.filter(({ priority }) => priority === best).map(({ name }) => name);
      if (!first.some((name) => used.has(name)))
        this.accuse("recovery", `The channel ${first.join(" or ")} works again, but is not used.`);
    }
  }

  #stop(): void {
    const { process, served } = this;
    if (process === null || served === null || process.dead) {
      this.accuse("boot", "The gateway does not run at the end, but everything works.");
      return;
    }
    served.stop(5000).then(
      () => (this.stopped = true),
      (error: unknown) => this.accuse("stop", `The gateway does not stop: ${String(error)}`),
    );
    this.#until(() => this.stopped, 30 * SECOND);
    if (!this.stopped) this.accuse("stop", "The gateway does not stop, but nothing is in flight.");
    this.#pass(2 * SECOND);
    const left = checkStopped(this, process, served);
    this.#until(() => left.every((timer) => !process.timers.has(timer)));
    checkTimersEnded(this, process);
  }

  #checkAll(): void {
    checkBooks(this);
    checkDelivered(this);
    checkResent(this);
  }
}

const UNCAUGHT = ["unhandledRejection", "uncaughtException"] as const;

/** Resolves after a turn of the runtime's event loop. Only then does the runtime report unhandled rejections. */
export async function runPlan(
  plan: Plan,
  make: Program,
  onLine: ((line: string) => void) | null = null,
): Promise<Outcome> {
  const world = new World(plan, make, onLine);
  const onRejection = (error: unknown): void => world.reject(error);
  for (const name of UNCAUGHT) process.on(name, onRejection);
  try {
    const outcome = world.run();
    await new Promise((resolve) => setImmediate(resolve));
    return outcome;
  } finally {
    for (const name of UNCAUGHT) process.off(name, onRejection);
  }
}
