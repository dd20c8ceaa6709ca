// Starts the real gateway for tests: as a child process, as users run it, or in this
// process, if a test needs to look inside. In both cases it has a config file in
// a folder of its own, a free port, and a ledger that can be read.

import { existsSync, writeFileSync } from "node:fs";
import { loadConfig } from "../../src/config/file/load.ts";
import { type Platform, PLATFORMS } from "../../src/config/schema.ts";
import type { ApiParts } from "../../src/gateway/api/parts.ts";
import type { Console } from "../../src/gateway/api/own-pages.ts";
import type { Gateway } from "../../src/gateway/gateway.ts";
import { createConsole } from "../../src/web/console.ts";
import type { RequestRecord } from "../../src/gateway/observe/observer.ts";
import { startGateway as startInside, type RunningGateway } from "../../src/gateway/start.ts";
import { makeTempFolder, readLedger, type TempFolder } from "./temp.ts";
import { collect, endChild } from "./output.ts";
import { PROGRAM } from "./program.ts";

export type { Platform };

/** Returns the secret of the key that `makeConfig` binds to the group of this platform. */
export const keyOf = (platform: Platform): string => `sk-test-${platform}`;

/** The credential that `makeConfig`'s channels send upstream. */
export const CREDENTIAL = "credential-of-the-channel";

type Section = Record<string, unknown>;

export interface TestConfig extends Section {
  channels: Record<string, Section>;
  groups: Record<string, Section>;
  keys: Section[];
}

/** Makes a config with a channel (named as the platform), a group and a key for each platform, all served by one upstream. */
export function makeConfig(upstream: { readonly url: string }, more: Section = {}): TestConfig {
  const each = (make: (platform: Platform) => Section) =>
    Object.fromEntries(PLATFORMS.map((platform) => [platform, make(platform)]));
  return {
    channels: each((platform) => ({ platform, base_url: upstream.url, credential: CREDENTIAL })),
    groups: each((platform) => ({ platform, multiplier: "1", channels: [platform] })),
    keys: PLATFORMS.map((platform) => ({ name: platform, group: platform, secret: keyOf(platform) })),
    ...more,
  };
}

export interface GatewayOptions {
  /** An object, or the text of the YAML file. An object without `listen` gets a free port on loopback. */
  readonly config: Section | string;
  readonly env?: Readonly<Record<string, string>>;
  /** The folder of an earlier start, whose ledger goes on. Absent: a new folder, which `stop` removes. */
  readonly folder?: TempFolder;
}

interface Prepared {
  readonly folder: TempFolder;
  readonly configPath: string;
  /** Reads the ledger's lines that have this text in them. */
  ledger(text?: string): Record<string, unknown>[];
  clean(): void;
}

function prepare({ config, folder }: GatewayOptions): Prepared {
  const home = folder ?? makeTempFolder();
  const configPath = home.join("gateway.yaml");
  const written =
    typeof config === "string" ? config : JSON.stringify({ listen: { port: 0 }, ...config }, null, 2);
  writeFileSync(configPath, written, { mode: 0o600 });
  const ledgerPath = home.join("ledger.jsonl");
  return {
    folder: home,
    configPath,
    ledger: (text) => (existsSync(ledgerPath) ? readLedger(ledgerPath, text) : []),
    clean: () => folder === undefined && home.remove(),
  };
}

export interface ChildGateway extends Prepared {
  readonly port: number;
  readonly url: string;
  readonly pid: number;
  stdout(): string;
  stderr(): string;
  /** Returns the records of the requests that have ended, in order. */
  records(): RequestRecord[];
  /** Resolves as soon as that many requests have ended. */
  recorded(count: number): Promise<RequestRecord[]>;
  /** Resolves as soon as the log has this text outside of its lines about requests. */
  noticed(text: string): Promise<void>;
  signal(name: NodeJS.Signals): void;
  readonly exited: Promise<number>;
  /** Sends SIGTERM, and SIGKILL if that takes too long for a test. Resolves with the exit status. */
  stop(): Promise<number>;
}

/** Runs `gateway serve` as a child process. Resolves when it reports that it is ready; rejects with its stderr if it ends before. */
export async function startGateway(
  options: GatewayOptions & {
    readonly args?: readonly string[];
    /** The command to run; without it, the program under test. */
    readonly command?: readonly string[];
    /** Called long before the gateway is ready: for tests that end it while it starts. */
    readonly spawned?: (child: { kill(name: NodeJS.Signals): void }) => void;
  },
): Promise<ChildGateway> {
  const prepared = prepare(options);
  const args = ["serve", "--config", prepared.configPath, "--log", "json", ...(options.args ?? [])];
  const child = Bun.spawn([...(options.command ?? PROGRAM), ...args], {
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
    env: { ...process.env, GATEWAY_CONFIG: undefined, ...options.env },
  });
  options.spawned?.(child);
  const out = collect(child.stdout);
  const err = collect(child.stderr);
  const ready = err.until((text) => /ready on http:\/\/[^\s]*:(\d+)/.exec(text));
  const port = await Promise.race([ready, child.exited]).then((found) => {
    if (typeof found === "object" && found !== null) return Number(found[1]);
    prepared.clean();
    throw new Error(`gateway serve ended before it was ready:\n${err.text()}${out.text()}`);
  });
  const records = (text: string): RequestRecord[] =>
    text
      .split("\n")
      .slice(0, -1)
      .map((line) => JSON.parse(line))
      .filter((line) => "endpoint" in line);
  return {
    ...prepared,
    port,
    url: `http://127.0.0.1:${port}`,
    pid: child.pid,
    stdout: () => out.text(),
    stderr: () => err.text(),
    records: () => records(out.text()),
    recorded: async (count) => {
      const found = await out.until((text) => (records(text).length >= count ? records(text) : null));
      if (found === null) throw new Error(`the gateway ended after ${records(out.text()).length} requests`);
      return found;
    },
    noticed: async (wanted) => {
      const found = await out.until((text) => findNotice(text, wanted));
      if (found === null) throw new Error(`the gateway ended without saying "${wanted}"`);
    },
    signal: (name) => child.kill(name),
    exited: child.exited,
    stop: async () => {
      const status = await endChild(child);
      prepared.clean();
      return status;
    },
  };
}

function findNotice(log: string, wanted: string): string | null {
  const lines = log.split("\n").slice(0, -1);
  return lines.find((line) => line.startsWith("{") && JSON.parse(line).notice?.includes(wanted)) ?? null;
}

export interface InsideGateway extends Prepared {
  readonly port: number;
  readonly url: string;
  readonly running: RunningGateway;
  readonly records: readonly RequestRecord[];
  /** Resolves as soon as that many requests have ended. */
  recorded(count: number): Promise<readonly RequestRecord[]>;
  /** The log without its lines about requests, in order. */
  readonly notices: readonly string[];
  stop(): Promise<void>;
}

/** Runs the gateway in this process. */
export function startGatewayHere(
  options: GatewayOptions & {
    /** Serve the console's page, and let it change the config file, which the gateway does not watch. */
    readonly console?: true;
    /** The console's clock. */
    readonly now?: () => number;
  },
): InsideGateway {
  const prepared = prepare(options);
  const { catalog } = loadConfig(prepared.configPath, { ...process.env, ...options.env });
  const records: RequestRecord[] = [];
  const notices: string[] = [];
  let waiting: (() => void)[] = [];
  const wake = (): void => {
    const woken = waiting;
    waiting = [];
    for (const each of woken) each();
  };
  const observer = {
    requestDone: (record: RequestRecord) => {
      records.push(record);
      wake();
    },
    notice: (_: string, text: string) => void notices.push(text),
  };
  const openConsole = (parts: ApiParts): Console => {
    const now = options.now ?? parts.gateway.now;
    const gateway: Gateway = Object.create(parts.gateway, { now: { value: now } });
    return createConsole({ ...parts, gateway }, "gateway");
  };
  const page = { configPath: prepared.configPath, openConsole };
  const running = startInside(catalog, [observer], options.console === true ? page : {});
  return {
    ...prepared,
    port: running.port,
    url: `http://127.0.0.1:${running.port}`,
    running,
    notices,
    /** A request is recorded one turn of the event loop after its answer. `flush` records it now. */
    get records() {
      running.gateway.finished.flush();
      return records;
    },
    recorded: async (count) => {
      while (records.length < count) await new Promise<void>((resolve) => waiting.push(resolve));
      return records;
    },
    stop: async () => {
      await running.stop(0);
      prepared.clean();
    },
  };
}
