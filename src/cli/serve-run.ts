// What `gateway serve` does once it is asked to: config in, gateway up, signals, reload, down.

import type { Catalog } from "../config/catalog.ts";
import { findConfig, type Loaded, loadConfig } from "../config/file.ts";
import { watchConfig } from "../config/watch.ts";
import { isLoopbackHost } from "../gateway/host.ts";
import { type RunningGateway, startGateway } from "../gateway/start.ts";
import { type Demo, startDemo, writeCurlLines } from "./demo.ts";
import { createRequestLog } from "./request-log.ts";
import type { ServeFlags } from "./serve.ts";

/** How long running streams may go on after the first SIGINT or SIGTERM. */
const GRACE_MS = 30_000;

type Source =
  | { readonly kind: "file"; readonly loaded: Loaded; readonly catalog: Catalog }
  | { readonly kind: "demo"; readonly demo: Demo; readonly catalog: Catalog };

export async function serve(flags: ServeFlags): Promise<void> {
  const source = readSource(flags);
  const log = createRequestLog(flags.log, printLine, warn);
  const catalog = override(source.catalog, flags);
  const running = startGateway(catalog, [log], source.kind === "file" ? source.loaded.path : null);
  announce(running, source, flags);
  const stopWatching =
    source.kind === "file" ? watch(source.loaded, running, flags) : () => source.demo.stop();
  await untilStopped(running);
  stopWatching();
}

function readSource(flags: ServeFlags): Source {
  if (flags.demo === true) {
    const demo = startDemo();
    return { kind: "demo", demo, catalog: demo.catalog };
  }
  const loaded = loadConfig(findConfig(flags.config, process.env), process.env);
  for (const text of loaded.warnings) warn(`warning: ${text}`);
  return { kind: "file", loaded, catalog: loaded.catalog };
}

function override(catalog: Catalog, flags: ServeFlags): Catalog {
  const { host, port } = catalog.listen;
  return { ...catalog, listen: { host: flags.host ?? host, port: flags.port ?? port } };
}

function announce(running: RunningGateway, source: Source, flags: ServeFlags): void {
  const { catalog } = running.gateway;
  const { host } = catalog.listen;
  const shown = host === "0.0.0.0" || host === "::" ? "localhost" : host.includes(":") ? `[${host}]` : host;
  const base = `http://${shown}:${running.port}`;
  if (!isLoopbackHost(host))
    warn(`warning: listening on ${host}: everyone who can reach this machine can reach the gateway`);
  const tell = flags.log === "json" ? warn : printLine;
  tell(`gateway is ready on ${base}`);
  tell(`config: ${source.kind === "file" ? source.loaded.path : "demo"}   ledger: ${catalog.ledger.path}`);
  for (const line of describeEndpoints(catalog)) tell(line);
  if (source.kind === "file") return;
  const { secrets } = source.demo;
  for (const [platform, secret] of Object.entries(secrets)) tell(`key of the ${platform} group: ${secret}`);
  for (const line of writeCurlLines(base, secrets, catalog.relayPrefix)) tell(line);
}

function describeEndpoints({ relayPrefix, groups }: Catalog): string[] {
  const paths = {
    messages: "POST /v1/messages",
    responses: "POST /v1/responses, /v1/chat/completions",
    content: "POST /v1beta/models/{model}:streamGenerateContent",
    relay: `POST /${relayPrefix}/v1/messages, /${relayPrefix}/v1beta/models/{model}:streamGenerateContent`,
  };
  const served = new Set([...groups.values()].map((group) => group.platform));
  return Object.entries(paths).flatMap(([platform, path]) => {
    const names = [...groups.values()]
      .filter((group) => group.platform === platform)
      .map((group) => group.name);
    return names.length === 0 || served.size === 0 ? [] : [`  ${path}   (${names.join(", ")})`];
  });
}

function watch(loaded: Loaded, running: RunningGateway, flags: ServeFlags): () => void {
  return watchConfig(loaded, process.env, {
    onChange: ({ catalog }) => {
      running.reload(override(catalog, flags));
      warn("config: the changed file is in force");
    },
    onProblem: (error) => warn(`config: not taken up, what runs goes on as it was.\n${error.message}`),
  });
}

/** The first signal drains, the second ends at once. */
async function untilStopped(running: RunningGateway): Promise<void> {
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
  await first.promise;
  await running.stop(GRACE_MS);
}

function printLine(line: string): void {
  process.stdout.write(`${line}\n`);
}

function warn(line: string): void {
  process.stderr.write(`${line}\n`);
}
