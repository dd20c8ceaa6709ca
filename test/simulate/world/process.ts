// A simulated process: new modules of the gateway, with simulated runtime calls. After it was killed, nothing that it does
// has an effect.

import type { World } from "../run.ts";
import { isIP } from "node:net";
import * as buffer from "node:buffer";
import { posix } from "node:path";
import { promisify } from "node:util";
import { constants } from "node:zlib";
import * as yaml from "yaml";
import * as zod from "zod";
import type { Network as GatewayNetwork } from "../../../src/gateway/start.ts";
import type { Seam, Served } from "../program.ts";
import type { Listener } from "../../../src/gateway/observe/observer.ts";
import type { Bundle } from "./bundle.ts";
import type { Disk, Inode } from "./disk.ts";
import { makeFiles, type OpenFile, USER } from "./files.ts";
import { GLOBALS, refuseOthers } from "./globals.ts";
import { makeSqlite } from "./locks.ts";
import type { Network } from "./network.ts";
import { Random } from "./random.ts";
import type { Event, Owner, Scheduler } from "./scheduler.ts";

export interface ProgramExports {
  readonly seam: Seam;
  serve(configPath: string, listener: Listener, network: GatewayNetwork): Served;
  verify(path: string): string[];
}

export interface Edges {
  readonly require: (name: string) => unknown;
  readonly globals: Readonly<Record<string, unknown>>;
}

/** Thrown at the point at which a process dies, so that nothing after it runs. */
export class Killed extends Error {
  override readonly name = "Killed";
}

/** An open connection of a process, on either side. */
export interface Connection {
  /** Called when the process has died. After a power cut, the other side gets no sign. */
  abandon(how: "killed" | "without power"): void;
}

/** A timer of the process. */
export interface Timer {
  readonly event: { current: Event | null };
  unref(): Timer;
}

/** The gateway's program. Its text is compiled once, and each process has modules of its own. */
export interface Program {
  readonly start: (process: SimProcess) => ProgramExports;
  readonly assets: Bundle["assets"];
}

type Start = (edges: Edges["globals"], require: Edges["require"], module: object) => void;

export function compileProgram({ text, assets }: Bundle): Program {
  const names = [...GLOBALS.replaced, ...GLOBALS.refused].join(", ");
  // The program sees these names instead of the runtime's.
  // The text is this project's own source. There is no other way to give each process its own modules.
  // oxlint-disable-next-line typescript/no-implied-eval, typescript/no-unsafe-type-assertion
  const compile = new Function(`"use strict";
let ${names};
return (edges, require, module) => {
({ ${names} } = edges);
${text}(module.exports, require, module);
};`) as () => Start;
  const start = (process: SimProcess): ProgramExports => {
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion
    const module = { exports: {} as ProgramExports };
    const { globals, require } = process.edges();
    compile()(globals, require, module);
    return module.exports;
  };
  return { start, assets };
}

export class SimProcess implements Owner {
  readonly name: string;
  readonly pid: number;
  readonly world: World;
  readonly scheduler: Scheduler;
  readonly network: Network;
  readonly disk: Disk;
  readonly files = new Map<number, OpenFile>();
  readonly connections = new Set<Connection>();
  readonly timers = new Set<Timer>();
  /** The files that were installed with the program. */
  assets: Bundle["assets"] = new Map();
  dead = false;
  frozenUntil = 0;
  /** The number of points at which the process could have been killed. */
  steps = 0;
  /** The point at which the process dies. */
  killAtStep = Number.POSITIVE_INFINITY;
  killHow: "killed" | "without power" = "killed";
  onDeath: (() => void) | null = null;
  /** Whether the gateway's control socket is open. Nobody in this world uses it. */
  hasControl = false;
  diedAt = Number.POSITIVE_INFINITY;
  readonly #taken = new Set<number>();
  readonly random: Random;
  #seam: Seam | null = null;

  constructor(world: World, name: string, pid: number) {
    this.world = world;
    this.name = name;
    this.pid = pid;
    this.scheduler = world.scheduler;
    this.network = world.network;
    this.disk = world.disk;
    this.random = new Random(world.seed, name, "inside");
  }

  /** Runs the modules. */
  load(program: Program): ProgramExports {
    this.assets = program.assets;
    const exports = program.start(this);
    this.#seam = exports.seam;
    return exports;
  }

  get seam(): Seam {
    if (this.#seam === null) throw new Error("its modules are not loaded");
    return this.#seam;
  }

  wall(): number {
    return Math.floor(this.scheduler.now / 1000) + this.world.wallOffset;
  }

  step(what: string): void {
    if (this.dead) throw new Killed("this process is dead");
    this.steps++;
    this.scheduler.note(`${this.name}: ${what}`);
    if (this.steps < this.killAtStep) return;
    this.scheduler.note(`${this.name} is killed before: ${what}`);
    this.kill(this.killHow);
    throw new Killed("killed");
  }

  standStill(us: number): void {
    this.frozenUntil = Math.max(this.frozenUntil, this.scheduler.now + us);
  }

  kill(how: "killed" | "without power"): void {
    if (this.dead) return;
    this.dead = true;
    this.diedAt = this.scheduler.now;
    this.timers.clear();
    this.files.clear();
    for (const connection of this.connections) connection.abandon(how);
    this.connections.clear();
    this.disk.freeLocks(this);
    this.onDeath?.();
  }

  takeFile(): number {
    if (this.dead) throw new Killed("this process is dead");
    let fd = 3;
    while (this.#taken.has(fd)) fd++;
    this.#taken.add(fd);
    return fd;
  }

  freeFile(fd: number): void {
    this.#taken.delete(fd);
  }

  wrote(path: string, inode: Inode, bytes: Uint8Array): void {
    this.world.wrote(this, path, inode, bytes);
  }

  beginSync(inode: Inode): (fails?: boolean) => void {
    const endOnDisk = this.disk.beginSync(inode);
    const end = this.world.beginSync(this, inode);
    return (fails = false) => {
      endOnDisk(fails);
      if (!fails) end();
    };
  }

  /** Reports an error that nothing catches: it would end the real process. */
  accuse(text: string): void {
    if (!this.dead) this.world.accuse("crash", text);
  }

  /** Returns everything from outside that the modules can use. */
  edges(): Edges {
    const files = makeFiles(this);
    const modules: Record<string, unknown> = {
      fs: files,
      path: posix,
      os: refuseOthers(
        {
          tmpdir: () => "/tmp",
          homedir: () => "/home/user",
          userInfo: () => ({ uid: USER }),
          hostname: () => "simulated",
          networkInterfaces: () => ({}),
        },
        "node:os",
      ),
      buffer: { isAscii: buffer.isAscii, isUtf8: buffer.isUtf8 },
      // `isIP` is the runtime's own, because it only reads text.
      net: refuseOthers({ isIP }, "node:net"),
      // No name resolves to this machine.
      "dns/promises": refuseOthers(
        { lookup: () => Promise.resolve([{ address: "203.0.113.1", family: 4 }]) },
        "node:dns/promises",
      ),
      // No body is compressed in the simulated world. Modules may import these functions, but a call throws.
      zlib: new Proxy<object>(
        { constants },
        { get: (own, name) => Reflect.get(own, name) ?? refuseAll(`node:zlib.${String(name)}`) },
      ),
      util: { promisify },
      "bun:sqlite": makeSqlite(this),
      zod,
      yaml,
    };
    const require = (name: string): unknown => {
      const found = modules[name.replace("node:", "")];
      if (found === undefined) throw new Error(`the simulator does not replace the module ${name}`);
      return found;
    };
    const globals: Record<string, unknown> = {
      AbortSignal: refuseTimeout(),
      Bun: this.#bun(),
      process: this.#process(),
      Date: this.#date(),
      performance: { now: () => this.scheduler.now / 1000 },
      Math: Object.defineProperties(
        {},
        {
          ...Object.getOwnPropertyDescriptors(Math),
          random: { value: () => this.random.float() },
        },
      ),
      crypto: refuseOthers(
        {
          getRandomValues: (into: Uint8Array) => {
            for (let at = 0; at < into.length; at++) into[at] = this.random.int(256);
            return into;
          },
          // The gateway uses only the beginning of an id, so eight digits are enough.
          randomUUID: () => this.random.bits().toString(16).padStart(8, "0"),
        },
        "crypto",
      ),
      reportError: (error: unknown) => this.accuse(`The gateway reported an error: ${String(error)}`),
      ...this.#timerFunctions(),
    };
    for (const name of GLOBALS.refused) globals[name] = refuseAll(name);
    return { require, globals };
  }

  #bun(): object {
    return refuseOthers(
      {
        serve: ({ unix }: { readonly unix: string }) => {
          const inode = this.disk.create(unix, "socket", 0o600, this.wall());
          this.hasControl = true;
          const stop = (): void => {
            this.hasControl = false;
            if (this.disk.find(unix) === inode) this.disk.remove(unix);
          };
          return { stop };
        },
        sleep: (ms: number) =>
          new Promise<void>((resolve) => void this.#startTimer(() => resolve(), ms, false, [])),
        hash: Bun.hash,
        SHA256: Bun.SHA256,
        CryptoHasher: Bun.CryptoHasher,
        deepEquals: (a: unknown, b: unknown, strict?: boolean) => Bun.deepEquals(a, b, strict),
      },
      "Bun",
    );
  }

  #process(): object {
    return refuseOthers(
      {
        pid: this.pid,
        platform: "linux",
        env: { HOME: "/home/user" },
        cwd: () => "/home/user",
        getuid: () => USER,
        geteuid: () => USER,
        getBuiltinModule: () => refuseAll("getBuiltinModule"),
      },
      "process",
    );
  }

  #date(): unknown {
    const wall = (): number => this.wall();
    return class extends Date {
      constructor(...values: []) {
        if (values.length === 0) super(wall());
        else super(...values);
      }
      static override now(): number {
        return wall();
      }
    };
  }

  #timerFunctions(): Record<string, unknown> {
    const clear = (timer: Timer | undefined | null): void => {
      if (timer === undefined || timer === null) return;
      if (timer.event.current !== null) this.scheduler.cancel(timer.event.current);
      this.timers.delete(timer);
    };
    return {
      setTimeout: (run: (...values: unknown[]) => void, ms = 0, ...values: unknown[]) =>
        this.#startTimer(run, ms, false, values),
      setInterval: (run: () => void, ms = 0) => this.#startTimer(run, ms, true, []),
      setImmediate: (run: () => void) => {
        if (this.dead) return;
        // The delay lets other events of the same turn of the event loop run first.
        const delay = this.random.int(60);
        this.scheduler.after(delay, this, "setImmediate", run);
      },
      clearTimeout: clear,
      clearInterval: clear,
    };
  }

  #startTimer(run: (...values: unknown[]) => void, ms: number, again: boolean, values: unknown[]): Timer {
    const timer: Timer = {
      event: { current: null },
      unref: () => timer,
    };
    if (this.dead) return timer;
    const start = (): void => {
      const late = this.random.int(1000);
      timer.event.current = this.scheduler.after(
        Math.max(1, ms) * 1000 + late,
        this,
        `timer ${Math.round(ms)}`,
        () => {
          timer.event.current = null;
          if (again) start();
          else this.timers.delete(timer);
          run(...values);
        },
      );
    };
    this.timers.add(timer);
    start();
    return timer;
  }
}

/** Makes `AbortSignal.timeout` throw: the runtime's own one would use real timers. */
function refuseTimeout(): unknown {
  return new Proxy(AbortSignal, {
    get: (target, property) =>
      property === "timeout" ? refuseAll("AbortSignal.timeout") : Reflect.get(target, property),
  });
}

/** Returns an object of which any use throws. */
function refuseAll(name: string): unknown {
  const refuse = (): never => {
    throw new Error(`the simulator does not replace ${name}`);
  };
  return new Proxy(function () {}, { get: refuse, apply: refuse, construct: refuse });
}
