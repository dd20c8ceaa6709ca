// TEMPORARY stand-in (lead): overwrite freely with the real one.
import * as http from "node:http";
import { type Inbound, type Outbound, type Sending, UpstreamFault } from "./types.ts";
export interface Client { send(o: Outbound): Sending; close(): void }
export function createClient(): Client {
  return { close() {}, send(o) {
    const headers: Record<string, string> = {}; for (const [n, v] of o.fields) headers[n] = v;
    if (o.body) headers["content-length"] = String(o.body.length);
    const req = http.request({ host: o.origin.host, port: o.origin.port, method: o.method, path: o.target, headers, agent: false });
    let answered = false; let cancelled = false;
    const head = new Promise<Inbound>((ok, no) => {
      req.on("error", (e: any) => no(new UpstreamFault(cancelled ? "cancelled" : e.code === "ECONNREFUSED" ? "connect" : "reset", e.message, answered, e)));
      req.on("response", (res) => { answered = true; const it = res[Symbol.asyncIterator]();
        const f = []; for (let i = 0; i < res.rawHeaders.length; i += 2) f.push([res.rawHeaders[i]!.toLowerCase(), res.rawHeaders[i + 1]!] as const);
        ok({ status: res.statusCode!, fields: f, field: (n) => f.find(([k]) => k === n)?.[1], length: null, closeDelimited: false, reused: false, buffered: false,
          async read() { try { const r = await it.next(); return r.done ? null : r.value; } catch (e: any) { throw new UpstreamFault(cancelled ? "cancelled" : "cut", e.message, true, e); } },
          cancel() { cancelled = true; res.destroy(new Error("cancelled")); } }); });
    });
    if (o.body) req.end(o.body); else req.end();
    return { head, cancel() { cancelled = true; req.destroy(new Error("cancelled")); } };
  } };
}
