// Serves a gateway's private socket (socket.ts).

import { existsSync, rmSync } from "node:fs";
import { messageOf } from "../../lib/errors.ts";
import { PLATFORM } from "../../lib/files/platform.ts";
import { parseJson } from "../../lib/json/json.ts";
import { everySecond } from "../../lib/time/heartbeat.ts";
import { VERSION } from "../../lib/version.ts";
import { answerCall } from "./routes.ts";
import type { ApiParts } from "./parts.ts";
import { locateControl, makeControlFolder, serveOn, VERSION_FIELD } from "./socket.ts";

export function serveCommands(parts: ApiParts): { close(): void } {
  // Requests over a removed socket are still answered.
  const servers = [openSocket(parts)];
  // A cleanup may remove the socket: then another one is opened.
  const endChecks = everySecond(() => {
    const server = servers.at(-1) ?? null;
    if (server !== null && !existsSync(server.path)) servers.push(openSocket(parts));
  });
  return {
    close: () => {
      endChecks();
      for (const server of servers) server?.stop(true);
    },
  };
}

/** This gateway has the ledger's lock, so an existing socket is dead. */
function openSocket(parts: ApiParts) {
  const { catalog, observer } = parts.gateway;
  const reasons: string[] = [];
  for (const { folder, path } of locateControl(catalog.ledger.path)) {
    try {
      makeControlFolder(folder);
      rmSync(path, { force: true });
      const server = serveOn(path, (request) => answer(request, parts));
      return {
        path,
        stop: (now: boolean): void => {
          void server.stop(now);
          if (!PLATFORM.hasSockets) rmSync(path, { force: true });
        },
      };
    } catch (error) {
      reasons.push(messageOf(error));
    }
  }
  observer.notice(
    "warning",
    `the control path cannot be opened, so no command can reach this gateway: ${reasons.join("; ")}`,
  );
  return null;
}

async function answer(request: Request, parts: ApiParts): Promise<Response> {
  const { method, url } = request;
  const { pathname, searchParams } = new URL(url);
  const given = method === "GET" ? Object.fromEntries(searchParams) : parseJson(await request.text());
  const call = { method, path: pathname.slice(1), given, isPage: false };
  const { status, document } = await answerCall(call, parts);
  return Response.json(document, { status, headers: { [VERSION_FIELD]: VERSION } });
}
