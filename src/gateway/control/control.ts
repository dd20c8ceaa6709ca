// The control path of a running gateway: HTTP and JSON on a unix socket that only this user can use. state.ts is its
// document, and cli/control.ts is its client.
//   GET  /state                          everything, as one document
//   GET  /status?session=ID&key=NAME     what a status line shows
//   POST /channels/NAME/disable|enable|probe

import { chmodSync, existsSync, rmSync } from "node:fs";
import { suggestNearest } from "../../config/nearest.ts";
import type { Activity } from "../observe/activity.ts";
import { countConnections } from "../channels/warm.ts";
import { probeChannel } from "../channels/probe.ts";
import { locateControl, makeControlFolder } from "./socket.ts";
import { buildStatus } from "./status.ts";
import { buildState, type GatewayAddress } from "./state.ts";
import type { Gateway } from "../gateway.ts";

export interface Control {
  close(): void;
}

const WINDOWS = process.platform.startsWith("win");
const NONE: Control = { close: () => {} };

/** The end of a login session, or a cleanup of temporary folders, can remove the socket of a running gateway. */
const SOCKET_CHECK_MS = 1000;

export function openControl(gateway: Gateway, activity: Activity, address: GatewayAddress): Control {
  if (WINDOWS) return NONE;
  const open = (): ControlServer | null =>
    openSocket(gateway, (request) => answer(request, gateway, activity, address));
  let server = open();
  // Requests that came over the removed socket are still answered.
  const former: ControlServer[] = [];
  const timer = setInterval(() => {
    if (server === null || existsSync(server.path)) return;
    former.push(server);
    server = open();
  }, SOCKET_CHECK_MS);
  timer.unref();
  return {
    close: () => {
      clearInterval(timer);
      for (const each of [...former, server]) each?.stop(true);
    },
  };
}

interface ControlServer {
  readonly path: string;
  stop(now: boolean): void;
}

type Answer = (request: Request) => Promise<Response>;

/** Without a control path the gateway still serves, so a failure is only a warning. The ledger is locked by now, so a
 *  socket that already exists belongs to a dead gateway. */
function openSocket(gateway: Gateway, answer: Answer): ControlServer | null {
  const reasons: string[] = [];
  for (const { folder, path } of locateControl(gateway.catalog.ledger.path)) {
    try {
      makeControlFolder(folder);
      rmSync(path, { force: true });
      const server = serveOn(path, answer);
      chmodSync(path, 0o600);
      return { path, stop: (now) => server.stop(now) };
    } catch (error) {
      reasons.push(error instanceof Error ? error.message : String(error));
    }
  }
  gateway.observer.notice(
    "warning",
    `the control path cannot be opened, so no command can reach this gateway: ${reasons.join("; ")}`,
  );
  return null;
}

/** Private to the user and with few requests, so the runtime's own server is enough. */
function serveOn(unix: string, answer: Answer): { stop(now: boolean): void } {
  return Bun.serve({
    unix,
    fetch: (request, server) => {
      // A probe takes as long as its upstream takes.
      server.timeout(request, 0);
      return answer(request);
    },
  });
}

async function answer(
  request: Request,
  gateway: Gateway,
  activity: Activity,
  address: GatewayAddress,
): Promise<Response> {
  const { pathname, searchParams } = new URL(request.url);
  const parts = pathname.split("/").slice(1);
  const route = `${request.method} ${parts[0] ?? ""}`;
  if (route === "GET state") return Response.json(buildState(gateway, activity, address));
  if (route === "GET status")
    return Response.json(buildStatus(searchParams.get("session"), searchParams.get("key"), gateway));
  if (route === "POST channels" && parts.length === 3)
    return actOnChannel(decodeURIComponent(parts[1] ?? ""), parts[2] ?? "", gateway);
  return refuse(404, "The control path has no such address.");
}

function refuse(status: number, message: string): Response {
  return Response.json({ error: message }, { status });
}

async function actOnChannel(name: string, action: string, gateway: Gateway): Promise<Response> {
  const { catalog, channels } = gateway;
  const channel = catalog.channels.get(name);
  if (channel === undefined)
    return refuse(404, `There is no channel "${name}"${suggestNearest(name, catalog.channels.keys())}.`);
  if (action === "probe") await probeChannel(channel, gateway);
  else if (action === "disable" || action === "enable") {
    if (channel.disabled === true)
      return refuse(409, `The channel "${name}" is disabled in the config file: change it there.`);
    channels.setDisabled(channel, action === "disable", gateway.now());
  } else return refuse(404, "A channel can be disabled, enabled and probed.");
  const view = channels.view(catalog, gateway.now()).filter((each) => each.name === name);
  return Response.json(countConnections(view, gateway)[0] ?? null);
}
