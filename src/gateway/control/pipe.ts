// The control path on Windows: a named pipe, because the runtime serves HTTP on none. Everybody could open a pipe of a known
// name, or make one before the gateway does. So its name is random, and stands in a file that only this user can read. A
// request is one line of JSON, and so is the reply.

import { readFileSync } from "node:fs";
import { connect, createServer, type Socket } from "node:net";
import { z } from "zod";
import { getErrorMessage } from "../../lib/errors.ts";
import { removeOwn, replaceFile } from "../../lib/files/own-file.ts";
import { parseJson } from "../../lib/json/json.ts";
import { randomHex } from "../../lib/secret.ts";

export interface PipeRequest {
  readonly method: string;
  /** With its query. */
  readonly path: string;
  readonly body?: string;
}

const requestSchema = z.lazy(() =>
  z.object({ method: z.string(), path: z.string(), body: z.string().optional() }),
);
const replySchema = z.lazy(() => z.object({ status: z.number(), body: z.string() }));

const MAX_LINE_CHARS = 64 << 20;

/** `place`: the file that gets the pipe's name. `name`: for tests on systems without pipes, the path of a socket. */
export function servePipe(
  place: string,
  answer: (request: Request) => Promise<Response>,
  name = `\\\\.\\pipe\\gateway-${randomHex(16)}`,
): { stop(): void } {
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    readLine(socket, (line) => {
      void reply(line, answer).then((text) => socket.end(`${text}\n`));
    });
  });
  server.on("error", () => {
    // Then commands find no gateway.
    removeOwn(place);
  });
  server.listen(name, () => replaceFile(place, name));
  return {
    stop: () => {
      server.close();
      removeOwn(place);
    },
  };
}

function readLine(socket: Socket, take: (line: string) => void): void {
  let text = "";
  socket.setEncoding("utf8");
  socket.on("error", () => socket.destroy());
  socket.on("data", (chunk) => {
    text += chunk;
    const end = text.indexOf("\n");
    if (end !== -1) take(text.slice(0, end));
    if (end !== -1 || text.length > MAX_LINE_CHARS) socket.removeAllListeners("data");
  });
}

async function reply(line: string, answer: (request: Request) => Promise<Response>): Promise<string> {
  const { data } = requestSchema.safeParse(parseJson(line));
  if (data === undefined) return JSON.stringify({ status: 400, body: "{}" });
  const { method, path, body } = data;
  try {
    const response = await answer(
      new Request(`http://gateway${path}`, { method, ...(body !== undefined && { body }) }),
    );
    return JSON.stringify({ status: response.status, body: await response.text() });
  } catch (error) {
    return JSON.stringify({ status: 500, body: JSON.stringify({ error: getErrorMessage(error) }) });
  }
}

/** Rejects with ENOENT or ECONNREFUSED if the gateway of this file runs no more. */
export function fetchOverPipe(place: string, request: PipeRequest, signal: AbortSignal): Promise<Response> {
  const name = readFileSync(place, "utf8");
  return new Promise((resolve, reject) => {
    const socket = connect(name, () => socket.write(`${JSON.stringify(request)}\n`));
    const give = (error: unknown): void => {
      socket.destroy();
      reject(error);
    };
    signal.addEventListener("abort", () => give(signal.reason), { once: true });
    socket.on("error", give);
    socket.on("close", () => give(Object.assign(new Error("the gateway has ended"), { code: "ECONNRESET" })));
    readLine(socket, (line) => {
      const { data } = replySchema.safeParse(parseJson(line));
      if (data !== undefined) resolve(new Response(data.body, { status: data.status }));
      socket.destroy();
    });
  });
}
