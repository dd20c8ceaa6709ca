// A recording as a HAR 1.2 document, for tools that show HTTP traffic. It has no times of chunks, and a WebSocket's response
// has its messages one after another.

import { queryOf } from "../dialects/path.ts";
import { VERSION } from "../lib/version.ts";
import type { RecordedExchange } from "./exchange.ts";
import type { Recording } from "./store.ts";

export function writeHar({ exchanges, readBody }: Recording): object {
  const entries = exchanges.map((exchange) => describeEntry(exchange, readBody));
  return { log: { version: "1.2", creator: { name: "gateway", version: VERSION }, entries } };
}

function describeEntry(
  { time, duration_ms, request, response, transport, id }: RecordedExchange,
  readBody: Recording["readBody"],
) {
  const sent = readBody(request.body);
  const got = readBody(response.body);
  const first = response.chunks[0]?.[0] ?? duration_ms;
  return {
    startedDateTime: time,
    time: duration_ms,
    request: {
      method: request.method,
      url: `http://127.0.0.1${request.target}`,
      httpVersion: "HTTP/1.1",
      cookies: [],
      headers: listFields(request.fields),
      queryString: listQuery(request.target),
      headersSize: -1,
      bodySize: sent.length,
      ...(sent.length > 0 && { postData: { mimeType: typeOf(request.fields), text: sent.toString() } }),
    },
    response: {
      status: response.status,
      statusText: "",
      httpVersion: "HTTP/1.1",
      cookies: [],
      headers: listFields(response.fields),
      content: { size: got.length, mimeType: typeOf(response.fields), text: got.toString() },
      redirectURL: "",
      headersSize: -1,
      bodySize: got.length,
    },
    cache: {},
    timings: { send: 0, wait: first, receive: Math.max(0, duration_ms - first) },
    comment: transport === undefined ? id : `${id}, over a WebSocket`,
  };
}

type RecordedFields = RecordedExchange["request"]["fields"];

function listFields(fields: RecordedFields): { name: string; value: string }[] {
  return fields.map(([name, value]) => ({ name, value }));
}

function typeOf(fields: RecordedFields): string {
  return fields.find(([name]) => name === "content-type")?.[1] ?? "application/json";
}

function listQuery(target: string): { name: string; value: string }[] {
  return [...new URLSearchParams(queryOf(target))].map(([name, value]) => ({ name, value }));
}
