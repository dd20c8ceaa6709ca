// The simulated upstreams of `serve --demo`, one server for each platform.

import { gunzipSync, zstdDecompressSync } from "node:zlib";
import { getField } from "../lib/json/json.ts";
import { createModel, FORMATS } from "./answers.ts";
import { type DemoPlatform, findEndpoint, listModels } from "./platforms.ts";

export function startUpstream(platform: DemoPlatform, paceMs: number) {
  const model = createModel();
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    // A stream may pause for longer than the default.
    idleTimeout: 0,
    development: false,
    fetch: async (request) => {
      const { pathname: path } = new URL(request.url);
      const list = request.method === "GET" ? listModels(platform, path) : null;
      if (list !== null) return Response.json(list);
      const endpoint = request.method === "POST" ? findEndpoint(path) : null;
      if (endpoint === null) return refuse(path, 404, `There is no ${request.method} ${path} here.`);
      const body = readBody(
        Buffer.from(await request.arrayBuffer()),
        request.headers.get("content-encoding"),
      );
      if (body === undefined) return refuse(path, 400, "The body is not JSON.");
      const format = FORMATS[endpoint.format];
      if (endpoint.purpose !== "generate")
        return Response.json(format[endpoint.purpose]?.(model.countInput(body), body));
      const answer = model.answer(format, body, endpoint.model ?? getField(body, "model"));
      const isStream = endpoint.streams ?? getField(body, "stream") === true;
      if (!isStream) return Response.json(format.writeReply(answer));
      const isArray = endpoint.streams === true && !request.url.includes("alt=sse");
      return stream(format.writeEvents(answer, body), paceMs, isArray);
    },
  });
  return { port: server.port ?? 0, stop: () => void server.stop(true) };
}

function readBody(bytes: Buffer, encoding: string | null): unknown {
  try {
    const plain =
      encoding === "gzip" ? gunzipSync(bytes) : encoding === "zstd" ? zstdDecompressSync(bytes) : bytes;
    return JSON.parse(plain.toString("utf8"));
  } catch {
    return undefined;
  }
}

/** Without `alt=sse`, a content stream is one JSON array. */
function stream(events: readonly string[], paceMs: number, isArray: boolean): Response {
  const pieces = isArray
    ? [
        ...events.map(
          (event, index) => `${index === 0 ? "[" : ",\r\n"}${event.slice("data: ".length).trimEnd()}`,
        ),
        "]",
      ]
    : events;
  let next = 0;
  const body = new ReadableStream<Uint8Array>({
    async pull(controller) {
      if (next > 0) await Bun.sleep(paceMs);
      controller.enqueue(Buffer.from(pieces[next] ?? ""));
      next += 1;
      if (next >= pieces.length) controller.close();
    },
  });
  const type = isArray ? "application/json" : "text/event-stream";
  return new Response(body, { headers: { "content-type": type } });
}

function refuse(path: string, status: number, message: string): Response {
  const type = status === 404 ? "not_found_error" : "invalid_request_error";
  const error = path.includes("/v1beta/")
    ? { code: status, message, status: status === 404 ? "NOT_FOUND" : "INVALID_ARGUMENT" }
    : { type, message, param: null, code: null };
  return Response.json({ type: "error", error }, { status });
}
