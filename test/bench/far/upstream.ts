// An upstream with TLS, in a process of its own. It responds at once, and closes idle connections after a minute, as many
// providers' load balancers do. Prints its port.
//   bun upstream.ts CERT KEY

import { writeJsonAnswer } from "../wire/answers.ts";

const [cert = "", key = ""] = process.argv.slice(2);
const IDLE_SECONDS = 60;
const answer = Buffer.from(writeJsonAnswer("messages"));
const body = answer.subarray(answer.indexOf("\r\n\r\n") + 4);

const server = Bun.serve({
  hostname: "127.0.0.1",
  port: 0,
  idleTimeout: IDLE_SECONDS,
  tls: { cert: Bun.file(cert), key: Bun.file(key) },
  fetch: async (request) => {
    await request.arrayBuffer();
    return new Response(body, { headers: { "content-type": "application/json" } });
  },
});
process.stdout.write(`${server.port}\n`);
