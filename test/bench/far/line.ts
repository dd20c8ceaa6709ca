// A long line to an upstream: a process that passes bytes on, each way after 25 ms. On loopback a connection is open at
// once, so the first bytes also wait for the round trip that opening it would take. Prints its port.
//   bun line.ts UPSTREAM_PORT

import { connect, createServer, type Socket } from "node:net";

const ONE_WAY_MS = 25;
const upstreamPort = Number(process.argv[2]);

/** Passes on what `from` sends, in order. */
function delay(from: Socket, to: Socket, openMs: number): void {
  const opened = performance.now() + openMs;
  const later = (run: () => void): void => {
    const due = Math.max(performance.now(), opened) + ONE_WAY_MS;
    setTimeout(run, due - performance.now());
  };
  from.on("data", (bytes) => later(() => void to.write(bytes)));
  from.on("end", () => later(() => to.end()));
  from.on("error", () => later(() => to.destroy()));
}

const server = createServer({ noDelay: true, allowHalfOpen: true }, (near) => {
  const far = connect({ port: upstreamPort, host: "127.0.0.1", noDelay: true, allowHalfOpen: true });
  delay(near, far, 2 * ONE_WAY_MS);
  delay(far, near, 0);
});
server.listen(0, "127.0.0.1", () => {
  const address = server.address();
  process.stdout.write(`${typeof address === "object" && address !== null ? address.port : 0}\n`);
});
