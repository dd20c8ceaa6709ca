// Other gateways, installed from npm into a temporary folder and run there as their packages say.
// None of them bills, or keeps a ledger. Each gets requests of a shape that it supports.

import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type Child, type Cores, findFreePort, type Folder, makeFolder, start } from "../machine.ts";
import { type Peer, PEERS, type Site } from "./peer-list.ts";
import { hold, PLAIN, type Recipe, type Target, waitForPort } from "./targets.ts";

const INSTALL_MS = 120_000;

export function planPeers(cores: Cores | null): Recipe[] {
  return PEERS.map((peer) => ({
    name: peer.name,
    start: (upstreamPort) => invite(peer, cores, upstreamPort),
  }));
}

async function invite(peer: Peer, cores: Cores | null, upstreamPort: number): Promise<Target> {
  const { node, npm } = { node: Bun.which("node"), npm: Bun.which("npm") };
  if (node === null || npm === null) throw new Error("node and npm are needed");
  const folder = makeFolder();
  const place = install(peer, npm, folder);
  const site: Site = { folder: folder.path, place, port: findFreePort(), upstreamPort };
  peer.prepare?.(site);
  const child = start([node, ...stayOnLoopback(folder), ...peer.command(site)], {
    core: cores?.proxy ?? null,
    cwd: folder.path,
    env: { HOME: folder.path, NODE_ENV: "production" },
  });
  void drain(child);
  await waitForPort(site.port, child);
  const guest = `${peer.name} ${peer.version} on node ${readVersion(node)}: ${peer.shape}`;
  return { ...PLAIN, ...hold(peer.name, child, folder), port: site.port, fields: peer.open(site), guest };
}

/** Returns the folder of the package. */
function install({ package: name, version }: Peer, npm: string, { path }: Folder): string {
  const quiet = ["--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error"];
  const { success, stderr } = Bun.spawnSync(
    [npm, "install", ...quiet, "--prefix", path, `${name}@${version}`],
    { cwd: path, timeout: INSTALL_MS },
  );
  const place = join(path, "node_modules", name);
  if (!success || !existsSync(place)) throw new Error(`npm install failed: ${stderr.toString().trim()}`);
  return place;
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

function readVersion(node: string): string {
  return Bun.spawnSync([node, "--version"]).stdout.toString().trim();
}

/** A full pipe would block a program that prints much. */
async function drain(child: Child): Promise<void> {
  while ((await child.readLine()) !== null);
}
