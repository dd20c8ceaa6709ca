// `gateway run --transparent`: the tool keeps the vendor's own address, and reaches the gateway through a proxy of this run.

import { mkdtempSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Group } from "../../../config/catalog.ts";
import { findProxy } from "../../../config/proxy.ts";
import type { Environment } from "../../../config/yaml/expand.ts";
import { isAllAt } from "../../../billing/prices.ts";
import { dialectOf } from "../../../dialects/index.ts";
import { originOf } from "../../../lib/http/upstream.ts";
import { createFile, removeFolder } from "../../../lib/files/own-file.ts";
import { fail, refuseUsage } from "../../terminal/terminal.ts";
import type { ToolConnection } from "../connection.ts";
import { isCovering, NO_PROXY_NAMES, omitHosts, splitList } from "../environment/no-proxy.ts";
import { listUnset } from "../environment/misleading.ts";
import type { ToolEnvironment } from "../programs/overlay.ts";
import {
  listCacheVariables,
  listHeaders,
  listMisleading,
  mainMakerOf,
  type Tool,
  type TransparentTool,
} from "../programs/tool.ts";
import { makeIdentity } from "./authority.ts";
import { openForwarder } from "./forward.ts";
import { openProxy } from "./proxy.ts";

/** A credential for nobody, at the length of one: Claude Code asks once whether to use it, and then knows it. */
const PLACEHOLDER = "placeholder-of-gateway-run-no-key-of-anybody";

export interface TransparentRun {
  readonly setting: ToolEnvironment;
  /** What the user has to know, in one line each. */
  readonly notes: readonly string[];
  close(): void;
}

export function openTransparent(connected: ToolConnection, env: Environment): TransparentRun {
  const { tool, connection, key } = connected;
  const ways = tool.transparent ?? refuseUsage(`--transparent: ${tool.title} cannot be run in this way.`);
  const hosts = key === null ? [ways.host] : listHosts(key.group, tool, ways);
  const known = { ...env, ...ways.readVariables(env) };
  refuseOtherProxies(hosts, known);
  const folder = mkdtempSync(join(tmpdir(), "gateway-run-"));
  const identity = makeIdentity(hosts, Date.now());
  const forwarder = openForwarder({
    gateway: originOf(new URL(connection.base)),
    own: Object.entries(listHeaders({ ...connection, usesLogin: true }) ?? {}),
    hosts,
    placeholder: PLACEHOLDER,
    env: known,
    dialect: dialectOf(connection.platform),
  });
  const proxy = openProxy({ hosts, identity, env: known, onExchange: forwarder.onExchange });
  const trusted = join(folder, "certificates.pem");
  createFile(trusted, readCertificates(known) + identity.authority);
  return {
    setting: {
      env: {
        ...(connection.usesLogin === true ? {} : ways.connect(PLACEHOLDER)),
        ...listCacheVariables(tool, connection),
        HTTPS_PROXY: proxy.url,
        https_proxy: proxy.url,
        NODE_EXTRA_CA_CERTS: trusted,
        ...Object.fromEntries(NO_PROXY_NAMES.map((name) => [name, omitHosts(known[name] ?? "", hosts)])),
      },
      unset: [...listUnset(listMisleading(tool, connection), env), ...ways.unset],
      args: [],
      proxied: hosts,
    },
    notes: describe(hosts, known),
    close() {
      proxy.close();
      forwarder.close();
      removeFolder(folder);
    },
  };
}

/** The hosts of the group's channels that have the vendor's own address. */
function listHosts(group: Group, tool: Tool, { host }: TransparentTool): string[] {
  const maker = mainMakerOf(group.platform);
  const own = group.channels.filter((channel) => isAllAt({ channels: [channel] }, maker));
  const urls = own.map(({ baseUrl }) => new URL(baseUrl));
  const hosts = urls.filter(({ protocol, port }) => protocol === "https:" && port === "");
  if (hosts.length > 0) return [...new Set(hosts.map(({ hostname }) => hostname))];
  return fail(
    `--transparent: ${tool.title} asks ${host}, and no channel of the group "${group.name}" has an address of that vendor. Run it without --transparent.`,
  );
}

/** A proxy that was set before is used for all other hosts. It has to know CONNECT, without TLS. */
function refuseOtherProxies(hosts: readonly string[], env: Environment): void {
  const given = ["https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"]
    .map((name) => env[name] ?? "")
    .find(Boolean);
  const proxy = findProxy(new URL("https://gateway.invalid"), { ...env, NO_PROXY: "", no_proxy: "" });
  if (given === undefined || proxy?.protocol === "http:") return;
  fail(
    `--transparent: the proxy of this run cannot use the proxy that is set in the environment, because it is not an http: proxy. Run the tool without --transparent, or unset that proxy. (${hosts.join(", ")} would go to the gateway.)`,
  );
}

/** What the tool trusted before, besides its own. Node itself reports a file that cannot be read. */
function readCertificates(env: Environment): string {
  const path = env["NODE_EXTRA_CA_CERTS"] ?? "";
  try {
    return path === "" ? "" : `${readFileSync(path, "utf8").trimEnd()}\n`;
  } catch {
    return "";
  }
}

function describe(hosts: readonly string[], env: Environment): string[] {
  const names = hosts.join(", ");
  const lists = NO_PROXY_NAMES.flatMap((name) => splitList(env[name] ?? ""));
  const lost = [...new Set(lists.filter((entry) => isCovering(entry, hosts)))];
  return [
    `Requests to ${names} go to the gateway, and all other hosts are reached as before. A program of the agent that calls ${names} by itself gets a certificate error, or is billed to this key if it runs on Node; NO_PROXY for that program avoids it.`,
    ...(lost.length === 0
      ? []
      : [`NO_PROXY has no ${lost.join(", ")} in this run, which would bypass the gateway.`]),
  ];
}
