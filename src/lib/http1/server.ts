// TEMPORARY stand-in (lead): overwrite freely with the real one.
import * as http from "node:http";
import { BodyTooLarge, ClientGone, type Exchange, type Field } from "./types.ts";
export interface Listener { port: number; stop(): Promise<void>; stopNow(): void }
export function listen(o: { hostname: string; port: number; onExchange: (e: Exchange) => void }): Listener & { ready: Promise<void> } {
  const s = http.createServer((req, res) => {
    let goneCbs: (() => void)[] = []; let gone = false; let done = false;
    const f: Field[] = []; for (let i = 0; i < req.rawHeaders.length; i += 2) f.push([req.rawHeaders[i]!.toLowerCase(), req.rawHeaders[i + 1]!]);
    res.on("close", () => { if (!done) { gone = true; for (const c of goneCbs) c(); } });
    res.on("finish", () => { done = true; });
    let begun = false;
    const put = (status: number, fields: readonly Field[]) => { begun = true; const h: Record<string, string> = {}; for (const [n, v] of fields) h[n] = v; res.writeHead(status, h); };
    const ex: Exchange = {
      method: req.method!, target: req.url!, fields: f, field: (n) => f.find(([k]) => k === n)?.[1],
      readBody: (limit) => new Promise((ok, no) => { const cs: Buffer[] = []; let n = 0; req.on("data", (c: Buffer) => { cs.push(c); n += c.length; if (n > limit) no(new BodyTooLarge("too large")); }); req.on("end", () => ok(Buffer.concat(cs))); req.on("error", () => no(new ClientGone())); }),
      answer(st, fi, b) { const buf = typeof b === "string" ? Buffer.from(b) : b; put(st, [...fi, ["content-length", String(buf.length)]]); done = true; res.end(buf); },
      begin(st, fi, l) { put(st, l === undefined ? fi : [...fi, ["content-length", String(l)]]); },
      write: (c) => res.write(c), flush: () => res.flushHeaders(), drained: () => new Promise((ok) => { if (!res.writableNeedDrain || gone) return ok(); res.once("drain", () => ok()); goneCbs.push(ok); }),
      end() { if (done) return; done = true; res.end(); }, reset() { done = true; req.socket.resetAndDestroy(); },
      get begun() { return begun; }, get gone() { return gone; }, onGone(c) { if (gone) c(); else goneCbs.push(c); },
    };
    o.onExchange(ex);
  });
  s.listen(o.port, o.hostname);
  return { get port() { return (s.address() as any)?.port ?? o.port; }, ready: Promise.resolve(), stop: () => new Promise((ok) => { s.close(() => ok()); s.closeIdleConnections(); }), stopNow: () => s.closeAllConnections() } as any;
}
