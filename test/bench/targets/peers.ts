// Other gateways, installed from npm into a temporary folder and run there on Node, as their packages say.
// They check no key, write no ledger and bill nothing. Each gets requests of a shape that it supports.

import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type Child, type Cores, findFreePort, type Folder, makeFolder, start } from "../machine.ts";
import { hold, PLAIN, type Recipe, waitForPort } from "./targets.ts";

interface Peer {
  readonly name: string;
  readonly package: string;
  readonly version: string;
  /** Arguments for node. */
  readonly words: (port: number) => readonly string[];
  readonly prepare?: (folder: Folder, port: number, upstreamPort: number) => void;
  readonly fields: (upstreamPort: number) => Readonly<Record<string, string>>;
  readonly shape: string;
}

const PEERS: readonly Peer[] = [
  {
    name: "portkey",
    package: "@portkey-ai/gateway",
    version: "~1.15.0",
    words: (port) => ["build/start-server.js", `--port=${port}`, "--headless"],
    fields: (upstreamPort) => ({
      "x-api-key": "none",
      "x-portkey-provider": "anthropic",
      "x-portkey-custom-host": `http://127.0.0.1:${upstreamPort}/v1`,
    }),
    shape: "POST /v1/messages, passed on as it is",
  },
  {
    name: "claude-code-router",
    package: "@musistudio/claude-code-router",
    version: "~2.0.0",
    words: () => ["dist/cli.js", "start"],
    prepare: writeRouterConfig,
    fields: () => ({ "x-api-key": "none" }),
    shape: "POST /v1/messages, converted to chat completions and back",
  },
];

const INSTALL_MS = 120_000;

export function planPeers(cores: Cores | null): Recipe[] {
  return PEERS.map((peer) => ({
    name: peer.name,
    start: async (upstreamPort) => {
      const { node, npm } = { node: Bun.which("node"), npm: Bun.which("npm") };
      if (node === null || npm === null) throw new Error("node and npm are needed");
      const folder = makeFolder();
      const installed = install(peer, npm, folder);
      const port = findFreePort();
      peer.prepare?.(folder, port, upstreamPort);
      const [program = "", ...words] = peer.words(port);
      const child = start([node, ...stayOnLoopback(folder), join(installed.path, program), ...words], {
        core: cores?.proxy ?? null,
        cwd: folder.path,
        env: { HOME: folder.path, NODE_ENV: "production" },
      });
      void drain(child);
      await waitForPort(port, child);
      const guest = `${peer.name} ${installed.version} on node ${readVersion(node)}: ${peer.shape}`;
      return { ...PLAIN, ...hold(peer.name, child, folder), port, fields: peer.fields(upstreamPort), guest };
    },
  }));
}

function install({ package: name, version }: Peer, npm: string, { path }: Folder) {
  const quiet = ["--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error"];
  const { success, stderr } = Bun.spawnSync(
    [npm, "install", ...quiet, "--prefix", path, `${name}@${version}`],
    { cwd: path, timeout: INSTALL_MS },
  );
  const place = join(path, "node_modules", name);
  if (!success || !existsSync(place)) throw new Error(`npm install failed: ${stderr.toString().trim()}`);
  const about: { readonly version: string } = JSON.parse(readFileSync(join(place, "package.json"), "utf8"));
  return { path: place, version: about.version };
}

/** Flags for Node: one of the peers would listen on all addresses and connect to anywhere. */
function stayOnLoopback({ path }: Folder): string[] {
  const file = join(path, "loopback.mjs");
  writeFileSync(
    file,
    `import { Server } from "node:net";
const { listen } = Server.prototype;
Server.prototype.listen = function (first, ...rest) {
  const asked = typeof first === "object" ? first : { port: first };
  return listen.call(this, { ...asked, host: "127.0.0.1" }, rest.findLast((each) => typeof each === "function"));
};
`,
  );
  return ["--import", file];
}

function writeRouterConfig({ path }: Folder, port: number, upstreamPort: number): void {
  const folder = join(path, ".claude-code-router");
  mkdirSync(folder);
  const config = {
    LOG: false,
    HOST: "127.0.0.1",
    PORT: port,
    NON_INTERACTIVE_MODE: true,
    Providers: [
      {
        name: "bench",
        api_base_url: `http://127.0.0.1:${upstreamPort}/v1/chat/completions`,
        api_key: "none",
        models: ["gpt-5-mini"],
      },
    ],
    Router: { default: "bench,gpt-5-mini" },
  };
  writeFileSync(join(folder, "config.json"), JSON.stringify(config));
}

function readVersion(node: string): string {
  return Bun.spawnSync([node, "--version"]).stdout.toString().trim();
}

/** A full pipe would block a program that prints much. */
async function drain(child: Child): Promise<void> {
  while ((await child.readLine()) !== null);
}
