// What `gateway serve` does once it is asked to: config in, gateway up, signals, reload, down.

import { statSync } from "node:fs";

import type { Ledger } from "../../billing/ledger/ledger.ts";
import { placeOfBook } from "../../billing/prices/stored-book.ts";
import type { Catalog } from "../../config/catalog.ts";
import { type Loaded, loadConfig } from "../../config/file.ts";
import { watchConfig } from "../../config/watch.ts";
import { isLoopbackHost } from "../../gateway/intake/own-host.ts";
import { type RunningGateway, startGateway } from "../../gateway/start.ts";
import { formatUsd, ZERO_USD } from "../../lib/money.ts";
import { quoteWord } from "../../lib/shell-word.ts";
import { type Demo, startDemo, writeCurlLines } from "./demo.ts";
import type { LogScreen } from "../live/log-screen.ts";
import { locateConfig } from "../setup/ask-init.ts";
import { describe } from "../config-access.ts";
import type { ServeFlags } from "./serve.ts";
import { openServeScreen, type ServeScreen } from "./serve-screen.ts";
import { tell } from "../terminal.ts";

/** How long running streams may go on after the first SIGINT or SIGTERM. */
const GRACE_MS = 30_000;
/** How long the last lines may take to leave, where whoever reads the log has stopped to: nothing else is left to do. */
const LAST_WORDS_MS = 1000;

type Source =
  | { readonly kind: "file"; readonly loaded: Loaded; readonly catalog: Catalog }
  | { readonly kind: "demo"; readonly demo: Demo; readonly catalog: Catalog };

export async function serve(flags: ServeFlags): Promise<void> {
  const source = await readSource(flags);
  const catalog = override(source.catalog, flags);
  let ledger: Ledger | null = null;
  const today = (): string => formatUsd(ledger === null ? ZERO_USD : ledger.spentTogether("day"));
  const screen = openServeScreen(flags.log, catalog, today);
  try {
    const configPath = source.kind === "file" ? source.loaded.path : null;
    const running = startGateway(catalog, [screen.observer], configPath);
    ledger = running.gateway.ledger;
    // Listened for before anyone is told that the gateway is ready: whoever reads that may stop it at once.
    const stopped = untilStopped(running, screen);
    announce(running, source, flags, screen);
    const watches =
      source.kind === "file"
        ? [watch(source.loaded, running, flags, screen), watchPrices(source.loaded.path, running, screen)]
        : [];
    await stopped;
    for (const end of watches) end();
    setTimeout(() => process.exit(), LAST_WORDS_MS).unref();
  } finally {
    screen.close();
    const kept = source.kind === "demo" ? source.demo.stop() : null;
    if (kept !== null) tell(`what it cost: gateway usage --ledger ${quoteWord(kept)}`);
  }
}

async function readSource(flags: ServeFlags): Promise<Source> {
  if (flags.demo === true) {
    const demo = startDemo();
    return { kind: "demo", demo, catalog: demo.catalog };
  }
  const loaded = loadConfig(await locateConfig(flags.config), process.env);
  for (const text of loaded.warnings) tell(`warning: ${text}`);
  return { kind: "file", loaded, catalog: loaded.catalog };
}

function override(catalog: Catalog, flags: ServeFlags): Catalog {
  const { host, port } = catalog.listen;
  return { ...catalog, listen: { host: flags.host ?? host, port: flags.port ?? port } };
}

function announce(running: RunningGateway, source: Source, flags: ServeFlags, screen: ServeScreen): void {
  const { catalog } = running.gateway;
  const { host } = catalog.listen;
  const shown = host === "0.0.0.0" || host === "::" ? "localhost" : host.includes(":") ? `[${host}]` : host;
  const base = `http://${shown}:${running.port}`;
  if (!isLoopbackHost(host))
    screen.warn(`warning: listening on ${host}: everyone who can reach this machine can reach the gateway`);
  const say = flags.log === "json" ? screen.warn : screen.print;
  say(`gateway is ready on ${base}`);
  say(`config: ${source.kind === "file" ? source.loaded.path : "demo"}   ledger: ${catalog.ledger.path}`);
  describeEndpoints(catalog).forEach(say);
  if (source.kind === "demo") {
    const { secrets } = source.demo;
    for (const [platform, secret] of Object.entries(secrets)) say(`key of the ${platform} group: ${secret}`);
    writeCurlLines(base, secrets, catalog.relayPrefix).forEach(say);
    say(`connect a tool: GATEWAY_KEY=${secrets.messages} gateway run claude --url ${base}`);
    say(`watch it live: gateway top --ledger ${quoteWord(catalog.ledger.path)}`);
  }
  if (catalog.keys.size === 0)
    screen.warn("warning: there are no keys yet, so nobody can call: `gateway keys add` makes one");
  screen.head();
}

function describeEndpoints({ relayPrefix, groups }: Catalog): string[] {
  const paths = {
    messages: "POST /v1/messages",
    responses: "POST /v1/responses, /v1/chat/completions",
    content: "POST /v1beta/models/{model}:streamGenerateContent",
    relay: `POST /${relayPrefix}/v1/messages, /${relayPrefix}/v1beta/models/{model}:streamGenerateContent`,
  };
  return Object.entries(paths).flatMap(([platform, path]) => {
    const names = [...groups.values()]
      .filter((group) => group.platform === platform)
      .map((group) => group.name);
    return names.length === 0 ? [] : [`  ${path}   (${names.join(", ")})`];
  });
}

function watch(loaded: Loaded, running: RunningGateway, flags: ServeFlags, { warn }: LogScreen): () => void {
  return watchConfig(loaded, process.env, {
    onChange: ({ catalog }) => {
      const waiting = running.reload(override(catalog, flags)).join(" and ");
      const later = waiting === "" ? "" : `; only at the next start: ${waiting}`;
      warn(`config: the changed file is in force${later}`);
    },
    onProblem: (error) => warn(`config: not taken up, what runs goes on as it was.\n${error.message}`),
  });
}

const PRICES_POLL_MS = 500;

/** `gateway prices update` replaces the book in one step: what is there is whole. */
function watchPrices(configPath: string, running: RunningGateway, { warn }: LogScreen): () => void {
  const path = placeOfBook(configPath);
  const stampOf = (): string => {
    const stats = statSync(path, { bigint: true, throwIfNoEntry: false });
    return stats === undefined ? "" : `${stats.ino}:${stats.size}:${stats.mtimeNs}`;
  };
  let stamp = stampOf();
  const poll = setInterval(() => {
    const now = stampOf();
    if (now === stamp) return;
    stamp = now;
    try {
      warn(`prices: ${running.reloadPrices()} is in force`);
    } catch (error) {
      warn(`prices: what runs goes on with the prices that it has. ${describe(error)}`);
    }
  }, PRICES_POLL_MS).unref();
  return () => clearInterval(poll);
}

/** The first signal drains, the second ends at once. So does a terminal that is closed; where nothing is a terminal
 *  (nohup, a service), what a hang-up means has been decided already. */
async function untilStopped(running: RunningGateway, { warn }: LogScreen): Promise<void> {
  const first = Promise.withResolvers<void>();
  let asked = false;
  const ask = (): void => {
    if (asked) {
      running.stopNow();
      return;
    }
    asked = true;
    warn("stopping: running streams may finish, a second signal ends them");
    first.resolve();
  };
  process.on("SIGINT", ask);
  process.on("SIGTERM", ask);
  if ([process.stdin, process.stdout, process.stderr].some(({ isTTY }) => isTTY)) process.on("SIGHUP", ask);
  await first.promise;
  await running.stop(GRACE_MS);
}
