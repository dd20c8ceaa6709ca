// An upstream on the npm package `ws`, under Node: software that we did not write. It offers compression, sends pings and
// fragments, and breaks connections where the model's name says so. Prints its port; prints what it received at the end
// of its stdin.

import { createServer } from "node:http";
import process from "node:process";
import { WebSocketServer } from "ws";

const server = createServer();
const sockets = new WebSocketServer({ server, perMessageDeflate: true });
const received = [];
const faults = [];

sockets.on("connection", (socket, request) => {
  if (request.headers["sec-websocket-extensions"] !== undefined) faults.push("an extension was offered");
  socket.on("error", (error) => faults.push(String(error)));
  socket.on("message", (data, isBinary) => {
    if (isBinary) faults.push("a binary message");
    const event = JSON.parse(String(data));
    if (event.type === "response.create") answer(socket, event);
  });
});

function answer(socket, { model }) {
  received.push(model);
  const response = { id: `resp_${model}`, object: "response", model, output: [] };
  const usage = { input_tokens: 10, output_tokens: 3, total_tokens: 13 };
  const events = [
    { type: "response.created", response },
    ...["a", "b", "c"].map((delta) => ({ type: "response.output_text.delta", model, delta })),
    { type: "response.completed", response: { ...response, status: "completed", usage } },
  ];
  for (const [index, event] of events.entries()) {
    if (index === 2) socket.ping("are you there");
    if (index === 3 && model.endsWith("-reset")) return socket.terminate();
    if (index === 4 && model.endsWith("-leave")) return;
    if (index === 3 && model.endsWith("-close")) return socket.close(1012, "restart");
    const text = JSON.stringify(event);
    // The second event comes in fragments.
    if (index === 1) {
      socket.send(text.slice(0, 5), { fin: false, compress: false });
      socket.send(text.slice(5), { fin: true, compress: false });
    } else {
      socket.send(text);
    }
  }
}

server.listen(0, "127.0.0.1", () => console.log(server.address().port));
process.stdin.resume();
process.stdin.on("end", () => {
  console.log(JSON.stringify({ received, faults }));
  process.exit(0);
});
