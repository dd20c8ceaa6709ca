// `gateway serve`: loads the config, starts the gateway, applies changes of the config, and stops at a signal.

import type { ContextNotes } from "../../gateway/observe/context.ts";
import type { LiveExport } from "../money/export.ts";
import { getErrorMessage } from "../../lib/errors.ts";
import { statSync } from "node:fs";
import { isatty } from "node:tty";

import type { Ledger } from "../../billing/ledger/ledger.ts";
import { placeOfBook } from "../../billing/prices/stored-book.ts";
import type { Catalog } from "../../config/catalog.ts";
import { findConfig, hasLocalConfig, placeConfig } from "../../config/file/find.ts";
import { type LoadedConfig, loadWithCredentials } from "../../config/file/load.ts";
import { ConfigError } from "../../config/yaml/problems.ts";
import { PLATFORMS } from "../../config/schema.ts";
import { type ConfigOutcome, type ConfigWatch, watchConfig } from "../../config/file/watch.ts";
import { describeAnswerPaths } from "../../dialects/platforms.ts";
import { isLoopback } from "../../config/proxy.ts";
import { describeBaseUrl } from "../../gateway/intake/own-host.ts";
import { type ChannelSetUp, type Follow, FOLLOWS_NOTHING } from "../../gateway/api/row.ts";
import type { Observer } from "../../gateway/observe/observer.ts";
import {
  loadRecorder,
  needsRecorder,
  type RunningGateway,
  startGateway,
  type StartOptions,
} from "../../gateway/start.ts";
import { createConsole } from "../../web/console.ts";
import { everySecond } from "../../lib/time/heartbeat.ts";
import { formatUsd, ZERO_USD } from "../../lib/money.ts";
import { quoteWord } from "../../lib/text/shell-word.ts";
import { createAlertCommand } from "./alert-command.ts";
import type { Demo } from "./demo.ts";
import { createRequestLog, type LogForm, type LogScreen, openLogScreen } from "../live/request-log.ts";
import { nameOwnCommand } from "../terminal/own-command.ts";
import { askYes, canPrompt, printNote } from "../terminal/terminal.ts";

/** How long open streams may continue after the first SIGINT or SIGTERM. */
const GRACE_MS = 30_000;
/** How long the last log lines may take to be written. Their reader may have stopped reading. */
const LAST_LINES_MS = 1000;
const STANDARD_STREAMS = [0, 1, 2];

type Source =
  | { readonly kind: "file"; readonly loaded: LoadedConfig; readonly catalog: Catalog }
  | { readonly kind: "demo"; readonly demo: Demo; readonly catalog: Catalog };

export interface ServeFlags {
  readonly config?: string;
  readonly port?: number;
  readonly host?: string;
  readonly demo?: true;
  readonly curl?: true;
  readonly log: LogForm;
}

export async function serve(flags: ServeFlags): Promise<void> {
  const source = await readSource(flags);
  const catalog = override(source.catalog, flags);
  let ledger: Ledger | null = null;
  const today = (): string => formatUsd(ledger === null ? ZERO_USD : ledger.sums.spentTogether("day"));
  const screen = openScreen(flags.log, catalog, today);
  try {
    const configPath = source.kind === "file" ? source.loaded.path : null;
    const alertCommand = createAlertCommand({
      command: () => running.gateway.catalog.alerts.command,
      configPath: configPath ?? catalog.ledger.path,
      warn: (text) => screen.observer.notice("warning", text),
    });
    const traces = createTraces(() => running.gateway.catalog, screen.warn);
    let follow = FOLLOWS_NOTHING;
    const observer: Observer = {
      ...screen.observer,
      requestDone: (record, line) => {
        screen.observer.requestDone(record, line);
        if (line) traces.add(line);
      },
      limitNear: (warning) => {
        screen.observer.limitNear(warning);
        alertCommand.run(warning);
      },
    };
    const contexts = createContexts(catalog.ledger.path, screen.warn);
    const running = await start(catalog, [observer], {
      configPath,
      contexts,
      ...(configPath !== null && { setUp: openSetUp(configPath) }),
      ...(needsRecorder(catalog) && { createRecorder: await loadRecorder() }),
      follow: { config: (written) => follow.config(written), prices: () => follow.prices() },
    });
    const watches = source.kind === "file" ? watchFiles(source.loaded, running, flags, screen) : null;
    if (watches !== null) follow = watches;
    ledger = running.gateway.ledger;
    // Listen for signals before announcing that the gateway is ready: a script may then stop it at once.
    const stopping = waitForSignal(running, screen);
    await announce(running, source, flags, screen);
    await stopping;
    await running.stop(GRACE_MS);
    watches?.end();
    await alertCommand.close();
    await traces.close();
    await contexts.close();
    setTimeout(() => process.exit(), LAST_LINES_MS).unref();
  } finally {
    const ledgerPath = source.kind === "demo" ? source.demo.stop() : null;
    if (ledgerPath !== null)
      printNote(`show the charges: ${nameOwnCommand()} usage --ledger ${quoteWord(ledgerPath)}`);
  }
}

interface ServeScreen extends LogScreen {
  readonly observer: Observer;
  /** Prints the titles of the columns. */
  readonly head: () => void;
}

/** `today`: the spending of the day so far, a decimal in USD. */
function openScreen(form: LogForm, { keys, channels }: Catalog, today: () => string): ServeScreen {
  const screen = openLogScreen();
  const expected = { key: findLongest(keys), channel: findLongest(channels) };
  const { head, ...log } = createRequestLog({ form, screen, expected, today });
  return { ...screen, head, observer: { ...log, streamOpened: () => {}, streamClosed: () => {} } };
}

function findLongest(named: ReadonlyMap<string, unknown>): string {
  return [...named.keys()].reduce((longest, name) => (name.length > longest.length ? name : longest), "");
}

/** Its code is loaded when the page asks. */
function openSetUp(configPath: string): ChannelSetUp {
  const load = async (): Promise<ChannelSetUp> =>
    (await import("../setup/channels.ts")).createChannelSetUp(configPath);
  return { list: async () => (await load()).list(), add: async (wish) => (await load()).add(wish) };
}

async function start(
  catalog: Catalog,
  observers: readonly Observer[],
  options: StartOptions,
): Promise<RunningGateway> {
  try {
    return startGateway(catalog, observers, {
      ...options,
      openConsole: (parts) => createConsole(parts, nameOwnCommand()),
    });
  } catch (error) {
    const { explainStartFailure } = await import("./second-gateway.ts");
    return explainStartFailure(error, catalog);
  }
}

/** Its code is loaded when the config has a receiver. */
function createTraces(catalog: () => Catalog, warn: (text: string) => void): LiveExport {
  let loading: Promise<LiveExport> | null = null;
  return {
    add: (line) => {
      if (catalog().otlp === null) return;
      loading ??= import("../money/export.ts").then(({ createLiveExport }) =>
        createLiveExport({ catalog, warn }),
      );
      void loading.then((live) => live.add(line));
    },
    close: async () => (await loading)?.close(),
  };
}

/** Its code is loaded when a session has a request. */
function createContexts(ledgerPath: string, warn: (text: string) => void): ContextNotes {
  let loading: Promise<ContextNotes> | null = null;
  let loaded: ContextNotes | null = null;
  const load = async (): Promise<ContextNotes> => {
    const { createContextNotes } = await import("../../gateway/observe/context.ts");
    return (loaded = createContextNotes(ledgerPath, warn));
  };
  return {
    note: (line, pieces, about) => {
      loading ??= load();
      void loading.then((notes) => notes.note(line, pieces, about));
    },
    last: (session) => loaded?.last(session) ?? null,
    close: async () => (await loading)?.close(),
  };
}

async function readSource(flags: ServeFlags): Promise<Source> {
  if (flags.demo === true) {
    const { startDemo } = await import("./demo.ts");
    const demo = startDemo();
    return { kind: "demo", demo, catalog: demo.catalog };
  }
  const loaded = await loadWithCredentials(await findOrCreateConfig(flags.config), process.env);
  for (const text of loaded.warnings) printNote(`warning: ${text}`);
  return { kind: "file", loaded, catalog: loaded.catalog };
}

/** On a terminal without a config, offers to write one. */
async function findOrCreateConfig(flag: string | undefined): Promise<string> {
  try {
    return findConfig(flag, process.env);
  } catch (error) {
    if (!(error instanceof ConfigError) || !canPrompt()) throw error;
    // The user may want to name that file instead.
    if (hasLocalConfig(placeConfig(flag, process.env))) throw error;
    if (!(await askYes("There is no config file yet. Write one now, as `gateway init` does?", true)))
      throw error;
    await (await import("../setup/init.ts")).init({});
    return findConfig(flag, process.env);
  }
}

function override(catalog: Catalog, flags: ServeFlags): Catalog {
  const { host, port } = catalog.listen;
  return { ...catalog, listen: { host: flags.host ?? host, port: flags.port ?? port } };
}

async function announce(
  running: RunningGateway,
  source: Source,
  flags: ServeFlags,
  screen: ServeScreen,
): Promise<void> {
  const { catalog } = running.gateway;
  const { host } = catalog.listen;
  const base = describeBaseUrl(host, running.port);
  if (!isLoopback(host))
    screen.warn(`warning: listening on ${host}: every machine that can reach this one can reach the gateway`);
  const link = createLink(running);
  const say = flags.log === "json" ? screen.warn : screen.print;
  if (source.kind === "demo") await announceDemo(source.demo, { base, link }, flags, say);
  else {
    say(`gateway is ready on ${base}`);
    say(`config: ${source.loaded.path}   ledger: ${catalog.ledger.path}`);
    describeEndpoints(catalog).forEach(say);
    if (link !== null) say(`page: ${link} (within 60 s; later: ${nameOwnCommand()} open)`);
  }
  if (catalog.keys.size === 0)
    screen.warn("warning: there are no keys yet. Create one with `gateway keys add`");
  screen.head();
}

/** A link is for a person: in a log it would only be a secret. */
function createLink({ console }: RunningGateway): string | null {
  return process.stdout.isTTY && console?.isServed === true ? console.createLink() : null;
}

/** A script, or a person with --curl, gets everything. */
async function announceDemo(
  { catalog, secrets }: Demo,
  { base, link }: { readonly base: string; readonly link: string | null },
  flags: ServeFlags,
  say: (line: string) => void,
): Promise<void> {
  const { writeCurlLines } = await import("./demo.ts");
  const isFull = !process.stdout.isTTY || flags.curl === true || flags.log === "json";
  const { path } = catalog.ledger;
  const command = nameOwnCommand();
  say(`gateway is ready on ${base}`);
  say(`config: demo   ledger: ${path}`);
  if (isFull) describeEndpoints(catalog).forEach(say);
  for (const [platform, secret] of Object.entries(secrets))
    if (isFull || platform === "messages") say(`key of the ${platform} group: ${secret}`);
  const lines = writeCurlLines(base, secrets, catalog.relayPrefix);
  lines.slice(0, isFull ? lines.length : 1).forEach(say);
  say(`connect a tool: GATEWAY_KEY=${secrets.messages} ${command} run --url ${base} claude`);
  say(`watch it live: ${command} top --ledger ${quoteWord(path)}`);
  if (link !== null) say(`page: ${link} (within 60 s; later: ${command} open --url ${base})`);
  if (!isFull) say("keys and requests for all platforms: start it with --curl");
}

function describeEndpoints({ relayPrefix, groups }: Catalog): string[] {
  return PLATFORMS.flatMap((platform) => {
    const path = describeAnswerPaths(platform, relayPrefix, ", ");
    const names = [...groups.values()]
      .filter((group) => group.platform === platform)
      .map((group) => group.name);
    return names.length === 0 ? [] : [`  ${path}   (${names.join(", ")})`];
  });
}

/** The config, and the price book next to it. */
function watchFiles(
  loaded: LoadedConfig,
  running: RunningGateway,
  flags: ServeFlags,
  screen: LogScreen,
): Follow & Pick<ConfigWatch, "end"> {
  const { warn } = screen;
  const prices = watchPrices(loaded.path, running, screen);
  const told = new Set(loaded.warnings);
  const config = watchConfig(loaded, process.env, {
    onChange: ({ catalog, warnings }) => {
      for (const text of warnings.filter((each) => !told.has(each))) warn(`warning: ${text}`);
      warnings.forEach((text) => told.add(text));
      const waiting = running.reload(override(catalog, flags)).join(" and ");
      const later = waiting === "" ? "" : `; a restart is needed for ${waiting}`;
      warn(`config: the changes are applied${later}`);
    },
    onProblem: (error) =>
      warn(`config: the changed file is invalid; the running configuration stays.\n${error.message}`),
  });
  return {
    config: config.follow,
    prices: prices.look,
    end: () => {
      prices.end();
      config.end();
    },
  };
}

interface PriceWatch {
  readonly look: () => ConfigOutcome;
  readonly end: () => void;
}

/** `gateway prices update` replaces the book in one step, so a changed file is whole. */
function watchPrices(configPath: string, running: RunningGateway, { warn }: LogScreen): PriceWatch {
  const path = placeOfBook(configPath);
  const readStamp = (): string => {
    const stats = statSync(path, { bigint: true, throwIfNoEntry: false });
    return stats === undefined ? "" : `${stats.ino}:${stats.size}:${stats.mtimeNs}`;
  };
  let stamp = readStamp();
  let outcome: ConfigOutcome = { kind: "applied" };
  const look = (): ConfigOutcome => {
    const now = readStamp();
    if (now === stamp) return outcome;
    stamp = now;
    try {
      warn(`prices: ${running.reloadPrices()} is in force`);
      outcome = { kind: "applied" };
    } catch (error) {
      const message = getErrorMessage(error);
      warn(`prices: the new book is not applied, the prices stay as they were. ${message}`);
      outcome = { kind: "refused", message };
    }
    return outcome;
  };
  return { look, end: everySecond(look) };
}

/** The first signal lets open streams finish, the second one ends them. Closing the terminal counts as a signal. Without
 *  a terminal (nohup, a service), SIGHUP keeps the meaning that the parent has set. */
function waitForSignal(running: RunningGateway, { warn }: LogScreen): Promise<void> {
  const first = Promise.withResolvers<void>();
  let stopping = false;
  const stop = (): void => {
    if (stopping) {
      running.stopNow();
      return;
    }
    stopping = true;
    warn("stopping: running streams may finish, a second signal ends them");
    first.resolve();
  };
  process.on("SIGINT", stop);
  process.on("SIGTERM", stop);
  // Without `process.stdin`, which would take 1 ms of the start.
  if (STANDARD_STREAMS.some((stream) => isatty(stream))) process.on("SIGHUP", stop);
  return first.promise;
}
