// A proxy between a tool and the gateway, which notes what the tool sends and gets.

export interface Exchanged {
  readonly path: string;
  readonly headers: Headers;
  readonly body: string;
  readonly status: number;
  readonly type: string;
  /** The header `x-gateway-adjusted`. */
  readonly adjusted: string;
  /** All that has reached the tool. */
  answer: string;
}

export interface Front {
  readonly url: string;
  readonly exchanged: Exchanged[];
  stop(): void;
}

export function startFront(target: () => string): Front {
  const exchanged: Exchanged[] = [];
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    idleTimeout: 0,
    async fetch(request) {
      const { pathname, search } = new URL(request.url);
      const headers = new Headers(request.headers);
      headers.delete("host");
      headers.delete("accept-encoding");
      const body = request.method === "POST" ? await request.text() : null;
      const { signal } = request;
      const response = await fetch(target() + pathname + search, {
        method: request.method,
        headers,
        body,
        signal,
      });
      if (body === null) return response;
      const kept: Exchanged = {
        path: pathname + search,
        headers,
        body,
        status: response.status,
        type: response.headers.get("content-type") ?? "",
        adjusted: response.headers.get("x-gateway-adjusted") ?? "",
        answer: "",
      };
      exchanged.push(kept);
      const decoder = new TextDecoder();
      const keep = new TransformStream<Uint8Array, Uint8Array>({
        transform(chunk, controller) {
          kept.answer += decoder.decode(chunk, { stream: true });
          controller.enqueue(chunk);
        },
      });
      const fields = new Headers(response.headers);
      fields.delete("content-length");
      return new Response(response.body?.pipeThrough(keep) ?? null, {
        status: response.status,
        headers: fields,
      });
    },
  });
  return { url: `http://127.0.0.1:${server.port}`, exchanged, stop: () => void server.stop(true) };
}
