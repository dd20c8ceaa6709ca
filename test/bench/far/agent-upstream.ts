// An upstream of the responses API, over HTTP and over a WebSocket, in a process of its own. It asks for a tool each time,
// at once. Prints its port.

const ITEM = {
  id: "fc_1",
  type: "function_call",
  call_id: "call_1",
  name: "read",
  arguments: '{"path":"a.ts"}',
};
const USAGE = { input_tokens: 1000, output_tokens: 20, total_tokens: 1020 };

function listEvents(): string[] {
  const response = { id: `resp_${crypto.randomUUID()}`, object: "response", model: "gpt-5.4", output: [] };
  return [
    { type: "response.created", response: { ...response, status: "in_progress" } },
    { type: "response.output_item.done", output_index: 0, item: ITEM },
    {
      type: "response.completed",
      response: { ...response, status: "completed", output: [ITEM], usage: USAGE },
    },
  ].map((event) => JSON.stringify(event));
}

const server = Bun.serve({
  hostname: "127.0.0.1",
  port: 0,
  idleTimeout: 60,
  fetch: async (request, self) => {
    if (request.headers.get("upgrade") !== null && self.upgrade(request)) return undefined;
    await request.arrayBuffer();
    const stream = listEvents().map((event) => `event: ${JSON.parse(event).type}\ndata: ${event}\n\n`);
    return new Response(stream.join(""), { headers: { "content-type": "text/event-stream" } });
  },
  websocket: {
    maxPayloadLength: 64 * 1024 * 1024,
    message: (socket) => {
      for (const event of listEvents()) socket.send(event);
    },
  },
});
process.stdout.write(`${server.port}\n`);
