// Clients on the npm package `ws`, under Node. Arguments: URL, key, connections, responses on each. Some clients leave in
// the middle of a response, some models make the upstream break. Prints what each response looked like.

import process from "node:process";
import { WebSocket } from "ws";

const [url, key, connections, responses] = process.argv.slice(2);
const result = { whole: 0, broken: 0, left: 0, foreign: [], errors: [], deflated: 0 };

function fateOf(name, turn) {
  const fates = ["", "", "", "-reset", "", "-leave", "", "-close"];
  return fates[(name * 7 + turn * 3) % fates.length];
}

function open() {
  const socket = new WebSocket(url, { headers: { authorization: `Bearer ${key}` }, perMessageDeflate: true });
  return new Promise((resolve, reject) => {
    socket.on("open", () => {
      if (socket.extensions !== "") result.deflated += 1;
      resolve(socket);
    });
    socket.on("error", reject);
  });
}

/** Resolves with how the response ended. */
function run(socket, model) {
  return new Promise((resolve) => {
    const onMessage = (data) => {
      const event = JSON.parse(String(data));
      const own = event.response?.model ?? event.model;
      if (event.type === "error") result.errors.push(event.error.message);
      else if (own !== model) result.foreign.push(`${model} got ${own}`);
      if (event.type === "response.output_text.delta" && model.endsWith("-leave")) socket.terminate();
      if (event.type === "response.completed" || event.type === "error") end("whole");
    };
    const onClose = () => end(model.endsWith("-leave") ? "left" : "broken");
    const end = (how) => {
      socket.off("message", onMessage);
      socket.off("close", onClose);
      resolve(how);
    };
    socket.on("message", onMessage);
    socket.on("close", onClose);
    socket.send(JSON.stringify({ type: "response.create", model, input: "Hello" }));
  });
}

async function use(name) {
  let socket = await open();
  for (let turn = 0; turn < Number(responses); turn += 1) {
    if (socket.readyState !== WebSocket.OPEN) socket = await open();
    result[await run(socket, `m-${name}-${turn}${fateOf(name, turn)}`)] += 1;
  }
  if (socket.readyState === WebSocket.OPEN) {
    socket.close(1000);
    await new Promise((resolve) => socket.on("close", resolve));
  }
}

await Promise.all(Array.from({ length: Number(connections) }, (_, name) => use(name)));
console.log(JSON.stringify(result));
