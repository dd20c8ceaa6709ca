// The control path of a running gateway: HTTP and JSON on a unix socket that only
// this user can use. What it tells is control-state.ts; who asks is cli/control.ts.
//   GET  /state                          everything, as one document
//   POST /channels/NAME/disable|enable|probe

import { chmodSync, existsSync, rmSync } from "node:fs";
import { suggestNearest } from "../../config/nearest.ts";
import type { Activity } from "../observe/activity.ts";
import { probeChannel } from "../channels/probe.ts";
import { locateControl, makeControlFolder } from "./socket.ts";
import { buildState, type Place } from "./state.ts";
import type { Gateway } from "../gateway.ts";

export interface Control {
  close(): void;
}

const WINDOWS = process.platform.startsWith("win");
const NONE: Control = { close: () => {} };

/** A session's end, or who tidies temporary folders, takes sockets away under a gateway that goes on. */
const PLACE_CHECK_MS = 1000;

export function openControl(gateway: Gateway, activity: Activity, place: Place): Control {
  if (WINDOWS) return NONE;
  const open = (): ControlServer | null =>
    openSocket(gateway, (request) => answer(request, gateway, activity, place));
  let server = open();
  // What is asked over a socket that is gone is still answered.
  const former: ControlServer[] = [];
  const timer = setInterval(() => {
    if (server === null || existsSync(server.path)) return;
    former.push(server);
    server = open();
  }, PLACE_CHECK_MS);
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

/** A gateway that cannot be asked still serves: the problem is told, and that is all.
 *  The ledger is locked by now, so that a socket that is there already is a dead gateway's. */
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
    `the control path cannot be opened, so no command can ask this gateway: ${reasons.join("; ")}`,
  );
  return null;
}

/** Private to the user and a few requests at a time: what the runtime brings does. */
function serveOn(unix: string, answer: Answer): { stop(now: boolean): void } {
  return Bun.serve({
    unix,
    fetch: (request, server) => {
      // A probe takes as long as its upstream does.
      server.timeout(request, 0);
      return answer(request);
    },
  });
}

async function answer(
  request: Request,
  gateway: Gateway,
  activity: Activity,
  place: Place,
): Promise<Response> {
  const parts = new URL(request.url).pathname.split("/").slice(1);
  const asked = `${request.method} ${parts[0] ?? ""}`;
  if (asked === "GET state") return Response.json(buildState(gateway, activity, place));
  if (asked === "POST channels" && parts.length === 3)
    return actOnChannel(decodeURIComponent(parts[1] ?? ""), parts[2] ?? "", gateway);
  return refuse(404, "The control path has no such place.");
}

function refuse(status: number, message: string): Response {
  return Response.json({ error: message }, { status });
}

async function actOnChannel(name: string, act: string, gateway: Gateway): Promise<Response> {
  const { catalog, channels } = gateway;
  const channel = catalog.channels.get(name);
  if (channel === undefined)
    return refuse(404, `There is no channel "${name}"${suggestNearest(name, catalog.channels.keys())}.`);
  if (act === "probe") await probeChannel(channel, gateway);
  else if (act === "disable" || act === "enable") {
    if (channel.disabled === true)
      return refuse(409, `The channel "${name}" is disabled in the config file: change it there.`);
    channels.setDisabled(channel, act === "disable", gateway.now());
  } else return refuse(404, "A channel can be disabled, enabled and probed.");
  return Response.json(channels.view(catalog, gateway.now()).find((view) => view.name === name) ?? null);
}
