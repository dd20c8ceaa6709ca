// A world for the tests of promises: the executable in a folder of its own, its upstream, clients and commands. Nothing here
// knows the source: what a test sees is what users see. One gateway serves the tests of a file; each test has a group, a key
// and channels of its own in it, so that no test feels another.

import { afterAll, beforeAll, expect, onTestFinished } from "bun:test";
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { collect, endChild } from "../../harness/output.ts";
import { cleanEnv, type Outcome, PROGRAM, runProcess } from "../../harness/program.ts";
import { type Exchanged, openRaw, type RawConnection, rawRequest, writeRequest } from "../../harness/raw.ts";
import { ask, type Dialect, PRICES } from "./answers.ts";
import { type Channel, type Fields, startUpstream, type Upstream } from "./upstream.ts";

export type Section = Record<string, unknown>;
export type Line = Record<string, any>; // oxlint-disable-line typescript/no-explicit-any -- lines are JSON of any shape
export type Platform = "messages" | "responses" | "content" | "relay";

/** The part of a config that a world makes from its groups. */
export interface BuiltConfig extends Section {
  readonly channels: Record<string, Section>;
  readonly groups: Record<string, Section>;
  readonly keys: Section[];
}

interface GroupOptions {
  readonly platform?: Platform;
  /** Settings by the channel's name. The default is one channel, `main`. */
  readonly channels?: Readonly<Record<string, Section>>;
  /** Settings of the group. */
  readonly group?: Section;
  /** Settings of the group's key, and those of further keys by name. */
  readonly key?: Section;
  readonly keys?: Readonly<Record<string, Section>>;
}

export interface Group {
  readonly name: string;
  /** The secret of the group's key. */
  readonly key: string;
  keyOf(name: string): string;
  /** Returns the channel's name in the config. Without `name`, it is the group's first channel. */
  channelName(name?: string): string;
  credentialOf(name?: string): string;
  channel(name?: string): Channel;
  /** Sends a request in a dialect with the group's key. */
  ask(dialect: Dialect, more?: Section, fields?: Fields): Promise<Exchanged>;
  /** Sends the same request as `ask`, but resolves at once: the test reads the answer while it arrives. */
  open(dialect: Dialect, more?: Section, fields?: Fields): Promise<RawConnection>;
}

interface RunOptions {
  readonly env?: Fields;
  readonly stdin?: string;
  readonly cwd?: string;
}

interface WorldOptions {
  /** Settings to add to the config. A function gets the settings that the world has made from its groups. */
  readonly config?: Section | ((built: BuiltConfig) => Section);
  readonly env?: Fields;
  readonly args?: readonly string[];
  /** Words before the program's name. */
  readonly prefix?: readonly string[];
}

const DIALECT_OF: Readonly<Record<Platform, Dialect>> = {
  messages: "messages",
  responses: "responses",
  content: "content",
  relay: "messages",
};

/** Secrets contain the name's hash, so that a message with the name does not seem to contain the secret. */
const hashOf = (name: string): string => Bun.hash(name).toString(16).padStart(16, "0");
const secretOf = (name: string): string => `sk-test-${hashOf(name)}`;

export const bearer = (key: string): Fields => ({ authorization: `Bearer ${key}` });

/** Resolves with the first result of `look`. It looks less and less often; the test's own time limit ends it. */
export async function eventually<T>(
  look: () => T | null | undefined | false | Promise<T | null | undefined | false>,
): Promise<T> {
  for (let pauseMs = 2; ; pauseMs = Math.min(40, 1.5 * pauseMs)) {
    const found = await look();
    if (found !== null && found !== undefined && found !== false) return found;
    await Bun.sleep(pauseMs);
  }
}

export function makeFolder(): string {
  return mkdtempSync(join(tmpdir(), "gateway-promise-"));
}

export function removeFolder(path: string): void {
  rmSync(path, { recursive: true, force: true, maxRetries: 5 });
}

export function runIn(folder: string, args: readonly string[], options: RunOptions = {}): Promise<Outcome> {
  return runProcess({ folder, ...options, env: { ...makeHome(folder), ...options.env } }, ...args);
}

function makeHome(folder: string): Fields {
  const home = join(folder, "home");
  mkdirSync(home, { recursive: true });
  return { HOME: home };
}

export interface Server {
  readonly port: number;
  readonly pid: number;
  readonly exited: Promise<number>;
  stdout(): string;
  stderr(): string;
  signal(name: NodeJS.Signals): void;
  /** Sends SIGTERM. Resolves with the exit status. */
  stop(): Promise<number>;
}

/** Runs `gateway serve` with these arguments. Rejects with its output if it ends before it is ready. */
export async function serveIn(
  folder: string,
  args: readonly string[] = [],
  env: Fields = {},
  prefix: readonly string[] = [],
): Promise<Server> {
  const child = Bun.spawn([...prefix, ...PROGRAM, "serve", ...args], {
    cwd: folder,
    env: cleanEnv(folder, { ...makeHome(folder), ...env }),
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
  });
  const [out, err] = [collect(child.stdout), collect(child.stderr)];
  const over = child.exited.then(() => null);
  // With `--log json`, stdout has the log alone, and stderr says "ready on".
  const [json, text] = [err, out].map((each) => each.until((all) => /ready on http:\/\/\S*:(\d+)/.exec(all)));
  const found = await Promise.race([json, text, over]);
  if (found === null || found === undefined)
    throw new Error(`gateway serve ended before it was ready:\n${err.text()}${out.text()}`);
  return {
    port: Number(found[1]),
    pid: child.pid,
    exited: child.exited,
    stdout: () => out.text(),
    stderr: () => err.text(),
    signal: (name) => child.kill(name),
    stop: () => endChild(child),
  };
}

export class World {
  readonly folder = makeFolder();
  readonly #options: WorldOptions;
  readonly #groups: { readonly name: string; readonly options: GroupOptions }[] = [];
  #upstream: Upstream | null = null;
  #server: Server | null = null;

  constructor(options: WorldOptions = {}) {
    this.#options = options;
  }

  get server(): Server {
    if (this.#server === null) throw new Error("the gateway has not started");
    return this.#server;
  }

  get upstream(): Upstream {
    if (this.#upstream === null) throw new Error("the upstream has not started");
    return this.#upstream;
  }

  get port(): number {
    return this.server.port;
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  path(...parts: string[]): string {
    return join(this.folder, ...parts);
  }

  /** Adds a group with a key and channels. It must be called before the start. */
  group(name: string, options: GroupOptions = {}): Group {
    this.#groups.push({ name, options });
    const dialect = DIALECT_OF[options.platform ?? "messages"];
    const { secret: key = secretOf(name) }: { secret?: string } = options.key ?? {};
    const prefix = options.platform === "relay" ? "/relay" : "";
    const first = Object.keys(options.channels ?? { main: {} })[0]!;
    const request = (of: Dialect, more: Section, fields: Fields) => ({
      ...ask(of, more, prefix),
      fields: { ...keyFields(dialect === "content" || of === "content" ? "content" : of, key), ...fields },
    });
    return {
      name,
      key,
      keyOf: (other) => secretOf(`${name}-${other}`),
      channelName: (channel = first) => `${name}-${channel}`,
      credentialOf: (channel = first) => `cred-${hashOf(`${name}-${channel}`)}`,
      channel: (channel = first) => this.upstream.channel(`${name}-${channel}`),
      ask: (of, more = {}, fields = {}) => rawRequest(this.port, request(of, more, fields)),
      open: async (of, more = {}, fields = {}) => {
        const connection = await openRaw(this.port);
        connection.send(writeRequest(request(of, more, fields)));
        return connection;
      },
    };
  }

  /** Builds the groups' part of the config. */
  build(): BuiltConfig {
    const channels: Record<string, Section> = {};
    const groups: Record<string, Section> = {};
    const keys: Section[] = [];
    for (const { name, options } of this.#groups) {
      const { platform = "messages", key = {}, group = {} } = options;
      const own = Object.entries(options.channels ?? { main: {} });
      for (const [channel, settings] of own) {
        const full = `${name}-${channel}`;
        const defaults = {
          platform,
          base_url: this.upstream.channel(full).url,
          credential: `cred-${hashOf(full)}`,
        };
        channels[full] = { ...defaults, ...settings };
      }
      groups[name] = {
        platform,
        multiplier: "1",
        channels: own.map(([each]) => `${name}-${each}`),
        ...group,
      };
      keys.push({ name, group: name, secret: secretOf(name), ...key });
      for (const [other, settings] of Object.entries(options.keys ?? {}))
        keys.push({
          name: `${name}-${other}`,
          group: name,
          secret: secretOf(`${name}-${other}`),
          ...settings,
        });
    }
    const prices = { "test-model": PRICES, "other-model": PRICES };
    const built = { listen: { port: 0 }, timezone: "UTC", warm: false, prices, channels, groups, keys };
    const { config = {} } = this.#options;
    return { ...built, ...(typeof config === "function" ? config(built) : config) };
  }

  writeConfig(config: Section | string): void {
    const text = typeof config === "string" ? config : JSON.stringify(config, null, 2);
    writeFileSync(this.path("gateway.yaml"), text, { mode: 0o600 });
    chmodSync(this.path("gateway.yaml"), 0o600);
  }

  get config(): string {
    return readFileSync(this.path("gateway.yaml"), "utf8");
  }

  async prepare(): Promise<void> {
    this.#upstream ??= await startUpstream();
    this.writeConfig(this.build());
  }

  /** Starts the gateway, or starts it again with the same files. */
  async start(...args: string[]): Promise<void> {
    if (this.#upstream === null) await this.prepare();
    const all = ["--log", "json", ...(this.#options.args ?? []), ...args];
    this.#server = await serveIn(this.folder, all, this.#options.env, this.#options.prefix);
  }

  async kill(): Promise<void> {
    this.server.signal("SIGKILL");
    await this.server.exited;
    this.#server = null;
  }

  async halt(): Promise<number> {
    const status = await this.server.stop();
    this.#server = null;
    return status;
  }

  async stop(): Promise<void> {
    if (this.#server !== null) await this.halt();
    this.#upstream?.stop();
    removeFolder(this.folder);
  }

  run(...args: string[]): Promise<Outcome> {
    return runIn(this.folder, args, { env: this.#options.env ?? {} });
  }

  runWith(options: RunOptions, ...args: string[]): Promise<Outcome> {
    return runIn(this.folder, args, options);
  }

  /** Runs a command with --json, and returns the document that it prints. */
  // oxlint-disable-next-line typescript/no-explicit-any -- documents are JSON of any shape
  async json(...args: string[]): Promise<any> {
    const { status, stdout, stderr } = await this.run(...args, "--json");
    if (stdout === "") throw new Error(`gateway ${args.join(" ")} ended with ${status}: ${stderr}`);
    return JSON.parse(stdout);
  }

  /** Reads the ledger's whole lines that have this text in them. */
  lines(text = ""): Line[] {
    const path = this.path("ledger.jsonl");
    const all = existsSync(path) ? readFileSync(path, "utf8").split("\n").slice(0, -1) : [];
    return all.filter((line) => line.includes(text)).map((line) => JSON.parse(line));
  }

  /** Returns the ledger line of the request that got this answer. Fails if the request has two lines. */
  async line(answer: Exchanged): Promise<Line> {
    const id = answer.field("x-request-id");
    if (id === undefined) throw new Error(`the answer has no x-request-id: ${answer.bytes.toString()}`);
    const own = await eventually(() => {
      const found = this.lines(id).filter((line) => line["id"] === id);
      return found.length > 0 && found;
    });
    expect(own).toHaveLength(1);
    return own[0]!;
  }

  /** Returns all that the gateway has printed: its log and its messages. */
  log(): string {
    return this.server.stdout() + this.server.stderr();
  }

  request(target: string, fields: Fields = {}, body?: string | Uint8Array | object, method?: string) {
    return rawRequest(this.port, {
      target,
      fields,
      ...(body !== undefined && { body }),
      ...(method && { method }),
    });
  }
}

export function keyFields(dialect: Dialect, key: string): Fields {
  if (dialect === "messages") return { "x-api-key": key };
  return dialect === "content" ? { "x-goog-api-key": key } : bearer(key);
}

/** Makes a world whose gateway runs for the tests of a file. */
export function useWorld(options: WorldOptions = {}): World {
  const world = new World(options);
  beforeAll(() => world.start());
  afterAll(() => world.stop());
  return world;
}

/** Opens a world for one test. */
export async function openOwnWorld<Groups>(
  options: WorldOptions,
  set: (world: World) => Groups,
): Promise<[World, Groups]> {
  const world = new World(options);
  onTestFinished(() => world.stop());
  const groups = set(world);
  await world.start();
  return [world, groups];
}
