// The floor of the benchmark passes bytes through the runtime's server and client, without any work of the gateway.

const [port, upstream] = process.argv.slice(2);

Bun.serve({
  hostname: "127.0.0.1",
  port: Number(port),
  development: false,
  fetch: async (request, server) => {
    server.timeout(request, 0);
    const body = await request.bytes();
    const answer = await fetch(`http://127.0.0.1:${upstream}/v1/messages`, { method: "POST", body });
    const pull = async (controller: ReadableStreamDirectController): Promise<void> => {
      for await (const piece of answer.body ?? []) await controller.write(piece);
      await controller.end();
    };
    const headers = { "content-type": "text/event-stream" };
    return new Response(new ReadableStream({ type: "direct", pull }), { headers });
  },
});
