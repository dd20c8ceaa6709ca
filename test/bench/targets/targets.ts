// The targets: the upstream itself, nginx as a plain reverse proxy, the gateway
// with everything switched on.

import { existsSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { type Child, type Cores, findFreePort, type Folder, makeFolder, start } from "../machine.ts";
import { closeSocket, tryConnect } from "../wire/sockets.ts";

export interface Target {
  readonly name: string;
  readonly port: number;
  /** Null for the upstream itself. */
  readonly pid: number | null;
  readonly path: string;
  readonly fields: Readonly<Record<string, string>>;
  readonly model: string;
  readonly stop: () => Promise<void>;
}

/** Starts a target: some scenarios need a fresh one. */
export interface Recipe {
  readonly name: string;
  readonly start: (upstreamPort: number) => Promise<Target>;
}

const PLAIN = { path: "/v1/messages", model: "claude-haiku-4-5" };
const SECRET = "sk-bench";
const MAIN = join(import.meta.dir, "../../../src/main.ts");
const EXECUTABLE = join(import.meta.dir, "../../../dist/gateway");

export const direct: Recipe = {
  name: "direct",
  start: async (port) => ({
    ...PLAIN,
    name: "direct",
    port,
    pid: null,
    fields: { "x-api-key": SECRET },
    stop: async () => {},
  }),
};

function findNginx(): string | null {
  return Bun.which("nginx", { PATH: `${process.env["PATH"] ?? ""}:/usr/sbin:/usr/local/sbin` });
}

export function planNginx(cores: Cores | null): Recipe | null {
  const nginx = findNginx();
  if (nginx === null) return null;
  return {
    name: "nginx",
    async start(upstreamPort) {
      const folder = makeFolder();
      const port = findFreePort();
      const file = join(folder.path, "nginx.conf");
      writeFileSync(file, writeNginxConfig(port, upstreamPort, folder.path));
      const child = start([nginx, "-p", folder.path, "-c", file, "-e", "stderr"], {
        core: cores?.proxy ?? null,
      });
      await waitForPort(port, child);
      return { ...PLAIN, ...hold("nginx", child, folder), port, fields: { "x-api-key": SECRET } };
    },
  };
}

/** One process, no buffering, reused upstream connections: the least that a proxy can do. */
function writeNginxConfig(port: number, upstreamPort: number, folder: string): string {
  const temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"];
  return `daemon off;
master_process off;
worker_processes 1;
pid ${folder}/nginx.pid;
error_log stderr error;
events { worker_connections 8192; }
http {
  access_log off;
  ${temporary.map((name) => `${name}_temp_path ${folder}/${name};`).join(" ")}
  keepalive_requests 1000000000;
  client_max_body_size 64m;
  upstream bench { server 127.0.0.1:${upstreamPort}; keepalive 1024; keepalive_requests 1000000000; }
  server {
    listen 127.0.0.1:${port} backlog=4096;
    location / {
      proxy_pass http://bench;
      proxy_http_version 1.1;
      proxy_set_header Connection "";
      proxy_buffering off;
      proxy_request_buffering off;
    }
  }
}
`;
}

/** The program as users run it: key check, routing over two channels, metering, prices and ledger are on; the request log is off. */
export function planGateway(name: string, command: readonly string[], cores: Cores | null): Recipe {
  return {
    name,
    async start(upstreamPort) {
      const folder = makeFolder();
      const file = writeGatewayConfig(folder, upstreamPort, { convert: !name.startsWith("gateway-0.1.") });
      const child = start([...command, "serve", "--config", file, "--log", "off"], {
        core: cores?.proxy ?? null,
      });
      return {
        ...PLAIN,
        ...hold(name, child, folder),
        port: await readReadyPort(child),
        fields: { "x-api-key": SECRET },
      };
    },
  };
}

/** Waits until a gateway says that it is ready. */
async function readReadyPort(child: Child): Promise<number> {
  for (let line = await child.readLine(); line !== null; line = await child.readLine()) {
    const port = /ready on http:\/\/[^\s]*:(\d+)/.exec(line)?.[1];
    if (port !== undefined) return Number(port);
  }
  throw new Error(`the gateway did not start: ${child.complaints()}`);
}

/** Version 0.1 knows no `convert`. */
export function writeGatewayConfig(
  folder: Folder,
  upstreamPort: number,
  { port = 0, convert = true }: { readonly port?: number; readonly convert?: boolean } = {},
): string {
  const file = join(folder.path, "gateway.yaml");
  const upstream = { base_url: `http://127.0.0.1:${upstreamPort}`, credential: "credential" };
  const config = {
    listen: { port },
    channels: {
      first: { platform: "messages", ...upstream, priority: 1 },
      second: { platform: "messages", ...upstream, priority: 2 },
      responses: { platform: "responses", ...upstream },
    },
    groups: {
      messages: { platform: "messages", multiplier: "0.8", channels: ["first", "second"] },
      responses: { platform: "responses", multiplier: "0.8", channels: ["responses"] },
      ...(convert
        ? { converted: { platform: "messages", multiplier: "0.8", channels: ["responses"], convert } }
        : {}),
    },
    keys: [
      { name: "bench", group: "messages", secret: SECRET },
      { name: "responses", group: "responses", secret: `${SECRET}-responses` },
      ...(convert ? [{ name: "converted", group: "converted", secret: `${SECRET}-converted` }] : []),
    ],
  };
  writeFileSync(file, JSON.stringify(config, null, 2), { mode: 0o600 });
  return file;
}

export type Commands = Readonly<Record<string, readonly string[]>>;

/** From source; also the executable if it exists, and another checkout if one is given to compare with. */
export function listCommands(flags: {
  readonly executable?: string | undefined;
  readonly against?: string | undefined;
}): Commands {
  const files = flags.executable?.split(",") ?? (existsSync(EXECUTABLE) ? [EXECUTABLE] : []);
  const named = files.map((file) => [file === EXECUTABLE ? "executable" : basename(file), [file]] as const);
  return {
    gateway: [process.execPath, MAIN],
    ...Object.fromEntries(named),
    ...(flags.against === undefined
      ? {}
      : { against: [process.execPath, join(flags.against, "src/main.ts")] }),
  };
}

export function hold(name: string, child: Child, folder: Folder): Pick<Target, "name" | "pid" | "stop"> {
  return {
    name,
    pid: child.pid,
    stop: async () => {
      await child.stop();
      folder.remove();
    },
  };
}

async function waitForPort(port: number, child: Child): Promise<void> {
  for (let tries = 0; tries < 1000 && child.process.exitCode === null; tries += 1) {
    const fd = tryConnect(port);
    if (fd >= 0) {
      closeSocket(fd);
      return;
    }
    await Bun.sleep(20);
  }
  throw new Error(`nobody listens on ${port}: ${child.complaints()}`);
}
