// `gateway serve` runs the gateway until a signal stops it.

import { statSync } from "node:fs";
import { dirname } from "node:path";
import { isatty } from "node:tty";
import { describeWarning, type LimitWarning } from "../../billing/limits/alerts.ts";
import { placeOfBook } from "../../billing/prices/book.ts";
import type { Catalog } from "../../config/catalog.ts";
import { formatMoment } from "../../config/changes/names.ts";
import { findConfig } from "../../config/file/find.ts";
import { loadWithCredentials, type LoadedConfig } from "../../config/file/load.ts";
import { type ConfigOutcome, watchConfig } from "../../config/file/watch.ts";
import { isLoopback } from "../../config/proxy.ts";
import { FOLLOWS_NOTHING, type ChannelSetUp } from "../../gateway/api/parts.ts";
import { describeBaseUrl } from "../../gateway/intake/own-host.ts";
import type { ContextNotes } from "../../gateway/observe/context.ts";
import type { Listener } from "../../gateway/observe/observer.ts";
import { startGateway, type RunningGateway, type StartOptions } from "../../gateway/start.ts";
import { codeOf, messageOf } from "../../lib/errors.ts";
import { LockHeld } from "../../lib/files/file-lock.ts";
import { PLATFORM } from "../../lib/files/platform.ts";
import { formatUsd } from "../../lib/money.ts";
import { quoteWord } from "../../lib/text/shell-word.ts";
import { everySecond } from "../../lib/time/heartbeat.ts";
import { createConsole } from "../../web/console.ts";
import { findRunning, formatBaseUrl } from "../access/running.ts";
import { createRequestLog, openLogScreen, type LogForm, type LogScreen } from "../live/request-log.ts";
import { nameOwnCommand } from "../terminal/own-command.ts";
import { fail, printNote } from "../terminal/terminal.ts";
import type { Demo } from "./demo.ts";

const GRACE_MS = 30_000;
/** How long to wait for the log's reader, which may hang. */
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
  const screen = openLogScreen();
  const log = createRequestLog(flags.log, screen);
  try {
    const configPath = source.kind === "file" ? source.loaded.path : null;
    let current = (): Catalog => catalog;
    const alertCommand = createAlertCommand(
      () => current().alerts.command,
      dirname(configPath ?? catalog.ledger.path),
      (text) => log.notice("warning", text),
    );
    const { warn } = screen;
    const traces = loadLater(async () => {
      const { createSpanExport } = await import("./spans.ts");
      return createSpanExport({ catalog: () => current(), warn });
    });
    const contexts = createContexts(catalog.ledger.path, warn);
    const follow = { ...FOLLOWS_NOTHING };
    const listener: Listener = {
      ...log,
      requestDone: (record, line) => {
        log.requestDone(record, line);
        if (line && current().otlp !== null) traces.use((live) => live.add(line));
      },
      limitNear: (warning) => {
        log.limitNear(warning);
        alertCommand.run(warning);
      },
    };
    const running = await start(catalog, listener, {
      configPath,
      contexts,
      ...(configPath !== null && { setUp: openSetUp(configPath) }),
      follow,
    });
    current = () => running.gateway.catalog;
    const watches = source.kind === "file" ? watchFiles(source.loaded, running, flags, screen) : null;
    Object.assign(follow, watches);
    // Waits for signals first: a script may stop the gateway after the announcement.
    const stopping = waitForSignal(running, screen);
    await announce(running, source, flags, screen);
    await stopping;
    await running.stop(GRACE_MS);
    watches?.end();
    for (const part of [alertCommand, traces, contexts]) await part.close();
    setTimeout(() => process.exit(), LAST_LINES_MS).unref();
  } finally {
    const ledgerPath = source.kind === "demo" ? source.demo.stop() : null;
    if (ledgerPath !== null)
      printNote(`show the charges: ${nameOwnCommand()} usage --ledger ${quoteWord(ledgerPath)}`);
  }
}

function createContexts(ledgerPath: string, warn: LogScreen["warn"]): ContextNotes {
  const notes = loadLater(
    async () => new (await import("../../gateway/observe/context.ts")).Contexts(ledgerPath, warn),
  );
  return {
    note: (...given) => notes.use((loaded) => loaded.note(...given)),
    last: (session) => notes.loaded()?.last(session) ?? null,
    close: notes.close,
  };
}

function loadLater<Part extends { close(): unknown }>(load: () => Promise<Part>) {
  let loading: Promise<Part> | null = null;
  let loaded: Part | null = null;
  return {
    use: (act: (part: Part) => void): void => {
      loading ??= load().then((part) => (loaded = part));
      void loading.then(act);
    },
    loaded: (): Part | null => loaded,
    close: async (): Promise<void> => void (await (await loading)?.close()),
  };
}

function openSetUp(configPath: string): ChannelSetUp {
  const load = async (): Promise<ChannelSetUp> =>
    (await import("../channels/change.ts")).createChannelSetUp(configPath);
  return { list: async () => (await load()).list(), add: async (wish) => (await load()).add(wish) };
}

async function start(catalog: Catalog, listener: Listener, options: StartOptions): Promise<RunningGateway> {
  try {
    const openConsole: StartOptions["openConsole"] = (parts) => createConsole(parts, nameOwnCommand());
    return startGateway(catalog, [listener], { ...options, openConsole });
  } catch (error) {
    return explainStartFailure(error, catalog);
  }
}

const REPLY_MS = 2000;

async function explainStartFailure(error: unknown, { ledger, listen }: Catalog): Promise<never> {
  const cause = error instanceof Error ? error.cause : undefined;
  if (codeOf(cause) === "EADDRINUSE")
    return fail(
      `Another program uses ${formatBaseUrl(listen)}, perhaps a gateway with another config. ` +
        "Stop it, or choose another port with --port or listen.port.",
    );
  if (!(cause instanceof LockHeld)) throw error;
  const { holder } = cause;
  const by = holder === null ? "another process" : `process ${holder.pid} since ${holder.since}`;
  const stop = holder === null ? "stop it" : `stop it with \`${PLATFORM.end(holder.pid)}\``;
  const running = await findRunning(ledger.path, REPLY_MS);
  const base = running === null ? null : formatBaseUrl(running.address);
  const state = base === null ? "which does not answer: " : `a gateway on ${base}. Use that one, or `;
  const advice = "A second gateway needs another `ledger.path` and port.";
  return fail(`The ledger ${ledger.path} is being written by ${by}, ${state}${stop}. ${advice}`);
}

async function readSource(flags: ServeFlags): Promise<Source> {
  if (flags.demo === true) {
    const demo = (await import("./demo.ts")).startDemo();
    return { kind: "demo", demo, catalog: demo.catalog };
  }
  const loaded = await loadWithCredentials(findConfig(flags.config, process.env), process.env);
  for (const text of loaded.warnings) printNote(`warning: ${text}`);
  return { kind: "file", loaded, catalog: loaded.catalog };
}

function override(catalog: Catalog, flags: ServeFlags): Catalog {
  const { host, port } = catalog.listen;
  return { ...catalog, listen: { host: flags.host ?? host, port: flags.port ?? port } };
}

async function announce(
  { port, console, gateway: { catalog } }: RunningGateway,
  source: Source,
  flags: ServeFlags,
  screen: LogScreen,
): Promise<void> {
  const { host } = catalog.listen;
  const base = describeBaseUrl(host, port);
  if (!isLoopback(host)) screen.warn(`warning: listening on ${host}: other machines can reach the gateway`);
  const link = createLink(console);
  const say = flags.log === "json" ? screen.warn : screen.print;
  const [config, again] = source.kind === "demo" ? ["demo", ` --url ${base}`] : [source.loaded.path, ""];
  const isForPerson = process.stdout.isTTY && flags.curl !== true && flags.log !== "json";
  const isBrief = source.kind === "demo" && isForPerson;
  say(`gateway is ready on ${base}`);
  say(`config: ${config}   ledger: ${catalog.ledger.path}`);
  if (source.kind === "demo") await announceDemo(source.demo, base, isBrief, say);
  if (link !== null) say(`page: ${link} (within 60 s; later: ${nameOwnCommand()} open${again})`);
  if (isBrief) say("all keys and requests: start it with --curl");
  if (catalog.keys.size === 0)
    screen.warn("warning: there are no keys yet. Create one with `gateway keys add`");
}

/** Only a terminal gets the link: a log must not have its secret. */
function createLink(console: RunningGateway["console"]): string | null {
  return process.stdout.isTTY && console?.isServed === true ? console.createLink() : null;
}

async function announceDemo(
  { catalog, secrets }: Demo,
  base: string,
  isBrief: boolean,
  say: (line: string) => void,
): Promise<void> {
  const { writeCurlLines } = await import("./demo.ts");
  for (const [platform, secret] of secrets)
    if (!isBrief || platform === "messages") say(`key of the ${platform} group: ${secret}`);
  const lines = writeCurlLines(base, secrets, catalog.relayPrefix);
  lines.slice(0, isBrief ? 1 : lines.length).forEach(say);
  const command = nameOwnCommand();
  say(`connect a tool: GATEWAY_KEY=${secrets.get("messages") ?? ""} ${command} run --url ${base} claude`);
  say(`watch it live: ${command} top --ledger ${quoteWord(catalog.ledger.path)}`);
}

function watchFiles(loaded: LoadedConfig, running: RunningGateway, flags: ServeFlags, { warn }: LogScreen) {
  const look = createPriceLook(loaded.path, running, warn);
  const endPrices = everySecond(look);
  const told = new Set(loaded.warnings);
  let problem: string | null = null;
  const config = watchConfig(loaded, process.env, {
    onChange: ({ catalog, warnings }) => {
      problem = null;
      for (const text of warnings.filter((each) => !told.has(each))) warn(`warning: ${text}`);
      warnings.forEach((text) => told.add(text));
      const waiting = running.reload(override(catalog, flags)).join(" and ");
      const later = waiting === "" ? "" : `; a restart is needed for ${waiting}`;
      warn(`config: the changes are applied${later}`);
    },
    onProblem: ({ message }) => {
      problem = message;
      warn(`config: the changed file is invalid; the running configuration stays.\n${message}`);
    },
  });
  const end = (): void => {
    endPrices();
    config.end();
  };
  return {
    config: config.follow,
    prices: look,
    problem: () => problem,
    end,
  };
}

function createPriceLook(
  configPath: string,
  running: RunningGateway,
  warn: LogScreen["warn"],
): () => ConfigOutcome {
  const path = placeOfBook(configPath);
  const readStamp = (): string => {
    const stats = statSync(path, { bigint: true, throwIfNoEntry: false });
    return stats === undefined ? "" : `${stats.ino}:${stats.size}:${stats.mtimeNs}`;
  };
  let stamp = readStamp();
  let outcome: ConfigOutcome = { kind: "applied" };
  return () => {
    const now = readStamp();
    if (now === stamp) return outcome;
    stamp = now;
    try {
      warn(`prices: ${running.reloadPrices()} is in force`);
      return (outcome = { kind: "applied" });
    } catch (error) {
      const message = messageOf(error);
      warn(`prices: the new book is not applied. ${message}`);
      return (outcome = { kind: "refused", message });
    }
  };
}

/** Without a terminal, SIGHUP keeps its inherited effect, for `nohup`. */
function waitForSignal(running: RunningGateway, { warn }: LogScreen): Promise<void> {
  const first = Promise.withResolvers<void>();
  let stopping = false;
  const stop = (): void => {
    if (stopping) return running.stopNow();
    stopping = true;
    warn("stopping: streams may finish, a second signal ends them");
    first.resolve();
  };
  process.on("SIGINT", stop);
  process.on("SIGTERM", stop);
  // `process.stdin` would take 1 ms of the start.
  if (STANDARD_STREAMS.some((stream) => isatty(stream))) process.on("SIGHUP", stop);
  return first.promise;
}

const LIMIT_MS = 10_000;
const CLOSE_MS = 2000;
/** Thousands of keys may reach a percentage of their limits at once. */
const MAX_RUNNING = 16;

function createAlertCommand(
  command: () => readonly string[] | null,
  folder: string,
  warn: LogScreen["warn"],
) {
  const running = new Set<Bun.Subprocess>();
  const run = async (warning: LimitWarning): Promise<void> => {
    const words = command() ?? [];
    if (words.length === 0) return;
    const name = `the command of \`alerts:\`, ${words[0]},`;
    if (running.size >= MAX_RUNNING) return warn(`${name} does not run for this alert: too many at once`);
    try {
      const child = Bun.spawn([...words], {
        cwd: folder,
        env: { ...process.env, ...describeInVariables(warning) },
        stdin: "ignore",
        stdout: "ignore",
        stderr: "inherit",
        timeout: LIMIT_MS,
        killSignal: "SIGKILL",
        windowsHide: true,
      });
      running.add(child);
      await child.exited;
      running.delete(child);
      if (child.signalCode !== null)
        warn(`${name} was ended by ${child.signalCode}: it may take at most ${LIMIT_MS / 1000} s`);
      else if (child.exitCode !== 0) warn(`${name} failed with status ${child.exitCode}`);
    } catch (error) {
      warn(`${name} cannot be started (${messageOf(error)})`);
    }
  };
  return {
    run: (warning: LimitWarning): void => void run(warning),
    close: async (): Promise<void> => {
      const timer = setTimeout(() => running.forEach((child) => child.kill("SIGKILL")), CLOSE_MS);
      await Promise.all([...running].map(({ exited }) => exited));
      clearTimeout(timer);
    },
  };
}

function describeInVariables(warning: LimitWarning): Record<string, string> {
  const { holder, limit, usd, spent, resets, percent } = warning;
  return {
    GATEWAY_ALERT_MESSAGE: describeWarning(warning),
    GATEWAY_ALERT_PERCENT: String(percent),
    GATEWAY_ALERT_KIND: holder.kind,
    GATEWAY_ALERT_NAME: holder.name,
    GATEWAY_ALERT_LIMIT: limit,
    GATEWAY_ALERT_LIMIT_USD: formatUsd(usd),
    GATEWAY_ALERT_SPENT_USD: formatUsd(spent),
    GATEWAY_ALERT_RESETS: resets === null ? "" : formatMoment(new Date(resets)),
  };
}
