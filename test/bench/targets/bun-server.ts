// The floor with the runtime's own HTTP: Bun.serve takes a request, and fetch passes it on.
//   bun bun-server.ts UPSTREAM-PORT

const upstream = `http://127.0.0.1:${process.argv[2]}`;

const server = Bun.serve({
  hostname: "127.0.0.1",
  port: 0,
  idleTimeout: 0,
  fetch: (request) => {
    const { pathname, search } = new URL(request.url);
    const { method, headers, body } = request;
    return fetch(`${upstream}${pathname}${search}`, { method, headers, body, decompress: false });
  },
});

process.stdout.write(`${server.port}\n`);
