// Starts a gateway from a Catalog, reloads it, and stops it.

import { openLedger } from "../billing/ledger/ledger.ts";
import { createAlerts, listLimitUses } from "../billing/limits/alerts.ts";
import { CallChains } from "../billing/limits/call-chains.ts";
import { createGate } from "../billing/limits/limits.ts";
import { listBirths } from "../billing/limits/spending.ts";
import { WaitingRequests } from "../billing/limits/waiting.ts";
import { refuseOpenLogins } from "./intake/login.ts";
import { loadBook, type PriceBook, refuseUnknownProviders } from "../billing/prices.ts";
import type { Catalog } from "../config/catalog.ts";
import type { Listen } from "../lib/http/exchange.ts";
import type { Upstream } from "../lib/http/upstream.ts";
import { createClient } from "../lib/http/client.ts";
import { listen } from "../lib/http/serve.ts";
import { MemoryBudget } from "../lib/memory/memory-budget.ts";
import { createActivity } from "./observe/activity.ts";
import { Channels } from "./channels/channels.ts";
import { type ApiParts, type ChannelSetUp, type Follow, FOLLOWS_NOTHING } from "./api/parts.ts";
import { serveCommands } from "./api/commands.ts";
import { ReportThread } from "./api/thread.ts";
import type { Console } from "./api/own-pages.ts";
import { keepChannelsWarm, startProbes } from "./channels/upkeep.ts";
import { RequestRecorder } from "./deliver/recorder.ts";
import type { Gateway } from "./gateway.ts";
import type { ContextNotes } from "./observe/context.ts";
import { KnownParts } from "./intake/known-parts.ts";
import { Runs } from "./intake/runs.ts";
import { CacheMemory } from "./cache/memory.ts";
import { InferredSessions } from "./intake/client.ts";
import { BoundedMap } from "../lib/memory/bounded-map.ts";
import { createMetrics } from "./api/metrics.ts";
import { ModelLists } from "./channels/model-list.ts";
import { createShortageAlarm, joinListeners, type Listener } from "./observe/observer.ts";
import { FinishQueue } from "./observe/finish-queue.ts";
import { closeBills } from "./bill/settle.ts";
import { rehearse } from "./send/rehearse.ts";
import { type RunningServer, startServer } from "./server.ts";

/** The memory for all bodies above 1 MiB. If bodies wait for it,
 *  their first bytes may take 64 MiB more. */
const LARGE_BODIES_BYTES = 448 * 1024 * 1024;
const MAX_BACKGROUND_RESPONSES = 10_000;
/** The rehearsal must not delay the start. */
const REHEARSE_MS = 500;

export interface RunningGateway {
  readonly gateway: Gateway;
  readonly console: Console | null;
  readonly port: number;
  /** Applies a changed config, or throws its first problem. Running requests keep the
   *  old one. Returns the settings that need a restart. */
  reload(catalog: Catalog): string[];
  /** Returns the book's name, or throws. */
  reloadPrices(): string;
  stop(graceMs: number): Promise<void>;
  stopNow(): void;
}

/** The simulator replaces the network. */
export interface Network {
  readonly listen: Listen;
  readonly createClient: () => Upstream;
}

const HTTP: Network = { listen, createClient };

export interface StartOptions {
  /** Null for a demo. */
  readonly configPath?: string | null;
  readonly follow?: Follow;
  readonly contexts?: ContextNotes;
  readonly openConsole?: (parts: ApiParts) => Console;
  readonly setUp?: ChannelSetUp;
  readonly network?: Network;
}

export function startGateway(
  catalog: Catalog,
  others: readonly Listener[],
  { configPath = null, follow = FOLLOWS_NOTHING, network = HTTP, ...options }: StartOptions = {},
): RunningGateway {
  const prices = loadBook(configPath);
  refuseFaults(catalog, prices);
  const metrics = createMetrics();
  const activity = createActivity(Date.now);
  const listeners = [metrics.listener, activity.listener, ...others];
  const observer = joinListeners(listeners);
  const halt = new AbortController();
  const gateway = createParts({
    catalog,
    prices,
    observer,
    client: network.createClient(),
    contexts: options.contexts ?? null,
    halt: halt.signal,
    now: Date.now,
    metrics: (detail) => metrics.render(gateway, detail),
  });
  const api: ApiParts = {
    gateway,
    activity,
    port: () => server.port,
    configPath,
    follow,
    setUp: options.setUp ?? null,
    console: () => console,
    thread: new ReportThread(gateway),
  };
  const console = options.openConsole?.(api) ?? null;
  if (console !== null) listeners.push(console.listener);
  const server: RunningServer = startServer(gateway, catalog.listen, { listen: network.listen, console });
  const prepare = (): void => void rehearse(gateway, server.port).catch(() => {});
  const rehearsal = network === HTTP ? setTimeout(prepare, REHEARSE_MS).unref() : undefined;
  return run(api, server, halt, rehearsal);
}

type Given = Pick<
  Gateway,
  "catalog" | "prices" | "observer" | "client" | "contexts" | "halt" | "now" | "metrics"
>;

function createParts(given: Given): Gateway {
  const { catalog, observer, client, now } = given;
  const { path, rotate } = catalog.ledger;
  const ledger = openLedger({
    path,
    rotate,
    zone: catalog.zone,
    births: listBirths(catalog.keys),
    report: (text, level) => observer.notice(level ?? "error", text),
  });
  const alerts = createAlerts({
    path: `${path}.alerts.json`,
    percentages: () => gateway.catalog.alerts.at,
    report: (warning) => observer.limitNear(warning),
    now,
  });
  const waiting = new WaitingRequests();
  const gateway: Gateway = {
    ...given,
    converts: hasConversions(catalog),
    memory: new MemoryBudget(LARGE_BODIES_BYTES),
    ledger,
    gate: createGate(ledger.sums, () => waiting.freed()),
    runs: new Runs(),
    waiting,
    chains: new CallChains(),
    recorder: new RequestRecorder(catalog, observer, now),
    alerts,
    channels: new Channels({ catalog, observer, ledger, client, now, random: Math.random }),
    lists: new ModelLists(client),
    background: new BoundedMap(MAX_BACKGROUND_RESPONSES),
    inferredSessions: new InferredSessions(ledger, now()),
    knownParts: new KnownParts(),
    cacheMemory: new CacheMemory(),
    openSockets: 0,
    finished: new FinishQueue((requests) => closeBills(requests, gateway)),
    raiseShortage: createShortageAlarm(observer, now),
  };
  return gateway;
}

function refuseFaults(catalog: Catalog, prices: PriceBook): void {
  refuseOpenLogins(catalog);
  refuseUnknownProviders(catalog.channels.values(), prices);
}

function hasConversions({ groups }: Catalog): boolean {
  return groups.values().some(({ convert }) => convert);
}

/** The config may have a lower limit now. */
function checkLimits({ alerts, catalog, ledger, now }: Gateway): void {
  alerts.check(listLimitUses(catalog.keys.values(), ledger.sums, now()));
}

function run(api: ApiParts, server: RunningServer, halt: AbortController, rehearsal?: Timer): RunningGateway {
  const { gateway } = api;
  const console = api.console();
  const control = serveCommands(api);
  let stopProbes = startProbes(gateway.catalog, gateway);
  keepChannelsWarm(gateway, "start");
  checkLimits(gateway);
  let closed: Promise<void> | null = null;
  const close = (): Promise<void> => {
    stopProbes();
    control.close();
    api.thread.close();
    gateway.channels.close();
    gateway.client.close();
    gateway.alerts.close();
    return gateway.ledger.close();
  };
  const stopNow = (): void => {
    halt.abort();
    server.stopNow();
  };
  return {
    gateway,
    console,
    port: server.port,
    reload: (catalog) => {
      const { listen, ledger } = gateway.catalog;
      const next = { ...catalog, listen, ledger };
      refuseFaults(next, gateway.prices);
      gateway.channels.retain(next);
      gateway.catalog = next;
      stopProbes();
      stopProbes = startProbes(next, gateway);
      gateway.converts ||= hasConversions(next);
      gateway.ledger.sums.follow(next.zone, listBirths(next.keys));
      keepChannelsWarm(gateway, "reload");
      checkLimits(gateway);
      gateway.waiting.freed();
      gateway.recorder.follow(next);
      return (["listen", "ledger"] as const).filter((name) => !Bun.deepEquals(catalog[name], next[name]));
    },
    reloadPrices: () => {
      const prices = loadBook(api.configPath);
      refuseUnknownProviders(gateway.catalog.channels.values(), prices);
      gateway.prices = prices;
      return prices.label;
    },
    stop: async (graceMs) => {
      // Another program may soon have this gateway's port.
      clearTimeout(rehearsal);
      console?.close();
      const timer = setTimeout(stopNow, graceMs);
      await server.drain();
      clearTimeout(timer);
      await gateway.recorder.close();
      await (closed ??= close());
    },
    stopNow,
  };
}
