// The control path of a running gateway: HTTP and JSON on a unix socket that only this user can use. state.ts is its
// document, and cli/access/control.ts is its client.
//   GET  /state                          everything, as one document
//   GET  /status?session=ID&key=NAME     what a status line shows
//   GET  /exported?name=NAME             which of these variables are in the gateway's environment
//   POST /channels/NAME/disable|enable|probe
//   POST /acceptance                     the owner accepts what starts have found in the ledger
//   POST /corrections                    amounts that `gateway ledger reprice` has found, for the ledger
//   POST /console/link                   a link that signs a browser in to the page
//   POST /config                         reads the config now, and answers when it is applied or refused
//   POST /recording                      a run is recorded from now on, or no longer
//   POST /prices                         the same with the price book beside the config

import { getErrorMessage } from "../../lib/errors.ts";
import { chmodSync, existsSync, rmSync } from "node:fs";
import { z } from "zod";
import { listLimitUses } from "../../billing/limits/alerts.ts";
import { repricingSchema } from "../../billing/ledger/line.ts";
import { RECORDING_NAME } from "../../config/yaml/scalars.ts";
import { getField, getName, parseJson } from "../../lib/json/json.ts";
import { PLATFORM } from "../../lib/files/platform.ts";
import { everySecond } from "../../lib/time/heartbeat.ts";
import type { Activity } from "../observe/activity.ts";
import { ActionRefused, actOnChannel } from "./channel-actions.ts";
import type { Console, Follow } from "./console.ts";
import { locateControl, makeControlFolder } from "./socket.ts";
import { buildStatus } from "./status.ts";
import { buildState, type GatewayAddress } from "./state.ts";
import type { Gateway, Recorder } from "../gateway.ts";

export interface Control {
  close(): void;
}

export interface ControlParts {
  readonly gateway: Gateway;
  readonly activity: Activity;
  readonly address: GatewayAddress;
  readonly console: Console | null;
  readonly follow: Follow;
  /** Loads what records. */
  readonly openRecorder: () => Promise<Recorder>;
}

const recordingSchema = z.lazy(() =>
  z.object({ session: z.string().min(1).max(200), name: z.string().regex(RECORDING_NAME).nullable() }),
);

export function openControl(parts: ControlParts): Control {
  const open = (): ControlServer | null => openSocket(parts.gateway, (request) => answer(request, parts));
  let server = open();
  // Requests that came over the removed socket are still answered.
  const former: ControlServer[] = [];
  // The end of a login session, or a cleanup of temporary folders, can remove the socket of a running gateway.
  const endChecks = everySecond(() => {
    if (server === null || existsSync(server.path)) return;
    former.push(server);
    server = open();
  });
  return {
    close: () => {
      endChecks();
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
      if (PLATFORM.hasSockets) chmodSync(path, 0o600);
      return { path, stop: (now) => server.stop(now) };
    } catch (error) {
      reasons.push(getErrorMessage(error));
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
  if (!PLATFORM.hasSockets) {
    const opened = import("./pipe.ts").then(({ servePipe }) => servePipe(unix, answer));
    return { stop: () => void opened.then((pipe) => pipe.stop()) };
  }
  return Bun.serve({
    unix,
    fetch: (request, server) => {
      // A probe takes as long as its upstream takes.
      server.timeout(request, 0);
      return answer(request);
    },
  });
}

/** `words`: of the path, without the first one. */
type Route = (
  request: Request,
  words: readonly string[],
  parts: ControlParts,
) => Response | Promise<Response>;

/** By the method and the first word of the path. */
const ROUTES: ReadonlyMap<string, Route> = new Map<string, Route>([
  [
    "GET state",
    (_, __, { gateway, activity, address }) => Response.json(buildState(gateway, activity, address)),
  ],
  ["GET status", answerStatus],
  [
    "GET exported",
    ({ url }) => Response.json(new URL(url).searchParams.getAll("name").filter((name) => process.env[name])),
  ],
  [
    "POST channels",
    (_, [name = "", action = ""], { gateway }) => answerAction(decodeURIComponent(name), action, gateway),
  ],
  ["POST corrections", async (request, _, { gateway }) => correct(await request.text(), gateway)],
  [
    "POST acceptance",
    (_, __, { gateway }) => Response.json({ accepted: gateway.ledger.acceptMarks().map(({ mark }) => mark) }),
  ],
  ["POST console", (_, [word], { console }) => (word === "link" ? answerLink(console) : refuseAddress())],
  ["POST config", answerConfig],
  ["POST recording", answerRecording],
  [
    "POST prices",
    (_, __, { address, follow }) => Response.json({ config: address.config, outcome: follow.prices() }),
  ],
]);

async function answer(request: Request, parts: ControlParts): Promise<Response> {
  const [first = "", ...words] = new URL(request.url).pathname.split("/").slice(1);
  const route = ROUTES.get(`${request.method} ${first}`);
  return route === undefined ? refuseAddress() : route(request, words, parts);
}

function refuseAddress(): Response {
  return refuse(404, "The control path has no such address.");
}

function answerStatus(request: Request, _: readonly string[], { gateway }: ControlParts): Response {
  const { searchParams } = new URL(request.url);
  return Response.json(buildStatus(searchParams.get("session"), searchParams.get("key"), gateway));
}

async function answerConfig(
  request: Request,
  _: readonly string[],
  { address, follow }: ControlParts,
): Promise<Response> {
  const written = getName(getField(parseJson(await request.text()), "sha256")) ?? "";
  return Response.json({ config: address.config, outcome: await follow.config(written) });
}

async function answerRecording(
  request: Request,
  _: readonly string[],
  { openRecorder }: ControlParts,
): Promise<Response> {
  const { success, data } = recordingSchema.safeParse(parseJson(await request.text()));
  if (!success) return refuse(400, "That is not a session and the name of a recording.");
  const recorder = await openRecorder();
  return Response.json(recorder.recordRun(data.session, data.name));
}

function refuse(status: number, message: string): Response {
  return Response.json({ error: message }, { status });
}

function answerLink(console: Console | null): Response {
  if (console === null) return refuse(404, "This gateway has no console.");
  try {
    return Response.json({ url: console.createLink() });
  } catch (error) {
    return refuse(409, getErrorMessage(error));
  }
}

async function answerAction(name: string, action: string, gateway: Gateway): Promise<Response> {
  try {
    return Response.json(await actOnChannel(name, action, gateway));
  } catch (error) {
    if (error instanceof ActionRefused) return refuse(error.status, error.message);
    throw error;
  }
}

/** The gateway writes its ledger alone, so corrections come to it. */
function correct(body: string, { ledger, alerts, catalog, now }: Gateway): Response {
  const { success, data } = z.array(repricingSchema).safeParse(parseJson(body));
  if (!success) return refuse(400, "The corrections have another form: the command has another version.");
  for (const draft of data) {
    if (ledger.problem !== null) return refuse(503, `Not all corrections were written: ${ledger.problem}.`);
    ledger.correct({ ...draft, time: new Date(now()).toISOString() });
  }
  alerts.check(listLimitUses(catalog.keys.values(), ledger, now()));
  return Response.json({ written: data.length });
}
