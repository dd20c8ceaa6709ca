// A tool that has just started and calls a provider itself: prints the milliseconds from its call to the first byte.
//   bun fresh.ts URL CA BODY

const [url = "", ca = "", body = ""] = process.argv.slice(2);
const began = performance.now();
const response = await fetch(url, {
  method: "POST",
  headers: { "content-type": "application/json", "x-api-key": "credential" },
  body,
  tls: { ca: Bun.file(ca) },
});
const first = await response.body?.getReader().read();
if (response.status !== 200 || first?.value === undefined) throw new Error(`status ${response.status}`);
process.stdout.write(`${performance.now() - began}\n`);
process.exit();
