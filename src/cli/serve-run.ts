// What `gateway serve` does once it is asked to: config in, gateway up, signals, reload, down.

import type { Catalog } from "../config/catalog.ts";
import { findConfig, loadConfig } from "../config/file.ts";
import { isLoopbackHost } from "../gateway/host.ts";
import { type RunningGateway, startGateway } from "../gateway/start.ts";
import { startDemo, writeCurlLines } from "./demo.ts";
import { createRequestLog } from "./request-log.ts";
import type { ServeFlags } from "./serve.ts";

/** How long running streams may go on after the first SIGINT or SIGTERM. */
const GRACE_MS = 30_000;

interface Source {
  readonly catalog: Catalog;
  /** Absolute path; null for the demo. */
  readonly path: string | null;
  readonly demo: ReturnType<typeof startDemo> | null;
}

export async function serve(flags: ServeFlags): Promise<void> {
  const source = readSource(flags);
  const log = createRequestLog(flags.log, printLine, warn);
  const catalog = override(source.catalog, flags);
  const running = startGateway(catalog, [log]);
  announce(running, catalog, source);
  const stopWatching = source.path === null ? () => {} : watch(source.path, running, flags);
  await untilStopped(running);
  stopWatching();
  source.demo?.stop();
}

function readSource(flags: ServeFlags): Source {
  if (flags.demo === true) {
    const demo = startDemo();
    return { catalog: demo.catalog, path: null, demo };
  }
  const { catalog, path, warnings } = loadConfig(findConfig(flags.config, process.env), process.env);
  for (const text of warnings) warn(`warning: ${text}`);
  return { catalog, path, demo: null };
}

function override(catalog: Catalog, flags: ServeFlags): Catalog {
  const { host, port } = catalog.listen;
  return { ...catalog, listen: { host: flags.host ?? host, port: flags.port ?? port } };
}

function announce(running: RunningGateway, catalog: Catalog, source: Source): void {
  const { host } = catalog.listen;
  const shown = host === "0.0.0.0" || host === "::" ? "localhost" : host.includes(":") ? `[${host}]` : host;
  const base = `http://${shown}:${running.port}`;
  if (!isLoopbackHost(host)) warn(`warning: listening on ${host}: everyone who can reach this machine can reach the gateway`);
  warn(`gateway is ready on ${base}`);
  warn(`config: ${source.path ?? "demo"}   ledger: ${catalog.ledger.path}`);
  for (const line of describeEndpoints(catalog)) warn(line);
  if (source.demo === null) return;
  for (const [platform, secret] of Object.entries(source.demo.secrets)) warn(`key of the ${platform} group: ${secret}`);
  for (const line of writeCurlLines(base, source.demo.secrets, catalog.relayPrefix)) warn(line);
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
    const names = [...groups.values()].filter((group) => group.platform === platform).map((group) => group.name);
    return names.length === 0 || served.size === 0 ? [] : [`  ${path}   (${names.join(", ")})`];
  });
}

function watch(..._: unknown[]) { return () => {}; }
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
