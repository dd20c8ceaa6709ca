// What a changed config does to a running gateway at once, and how it stops.

import { afterEach, expect, test } from "bun:test";
import { tryGateway } from "../../src/cli/access/control.ts";
import { checkConfigText } from "../../src/config/file/load.ts";
import { startServer } from "../../src/gateway/server.ts";
import { listen } from "../../src/lib/http1/server/server.ts";
import { draftOf, intentOf } from "../billing/ledger/ledger-samples.ts";
import { type InsideGateway, makeConfig, startGatewayHere } from "../harness/gateway.ts";

let inside: InsideGateway;
afterEach(() => inside.stop());

const UPSTREAM = { url: "http://127.0.0.1:9" };
const OF = { key: "messages", group: "messages" };

const limited = (usd: string) => {
  const config = makeConfig(UPSTREAM);
  config.keys[0] = { ...config.keys[0], limits: { usd_total: usd } };
  return config;
};

function start(config = makeConfig(UPSTREAM)): void {
  inside = startGatewayHere({ config });
}

function reload(config: object): void {
  const text = JSON.stringify({ listen: { port: 0 }, ...config });
  inside.running.reload(checkConfigText(text, inside.configPath, {}).catalog);
}

async function spend(usd: string | null): Promise<void> {
  const { ledger } = inside.running.gateway;
  const time = new Date().toISOString();
  await ledger.open(intentOf("req_1", { ...OF, time }));
  ledger.append(draftOf("req_1", { ...OF, time, official_usd: usd, charge_usd: usd }));
}

test("a changed time zone changes the days of limits", () => {
  start();
  reload(makeConfig(UPSTREAM, { timezone: "Asia/Tokyo" }));
  expect(inside.running.gateway.ledger.zone.name).toBe("Asia/Tokyo");
});

test("a limit that is lowered below what is spent warns at once", async () => {
  start(limited("100"));
  await spend("4.5");
  reload(limited("5"));
  expect(await inside.warned(1)).toMatchObject([{ limit: "usd_total", percent: 80 }]);
});

test("a correction that comes near a limit warns at once", async () => {
  start(limited("5"));
  await spend(null);
  const { path } = inside.running.gateway.catalog.ledger;
  const draft = draftOf("req_1", OF);
  const { key, group, platform, channel, model, usage, prices, price_source, tier, multiplier } = draft;
  const same = { key, group, platform, channel, model, usage, prices, price_source, tier, multiplier };
  const correction = {
    ...same,
    id: "cor_1",
    corrects: "req_1",
    request_time: draft.time,
    official_usd: "4.5",
    charge_usd: "4.5",
    was: { official_usd: null, charge_usd: null },
  };
  const to = { ledgerPath: path, body: [correction] };
  expect(await tryGateway(to, "POST", "/corrections")).toEqual({ written: 1 });
  expect(await inside.warned(1)).toMatchObject([{ limit: "usd_total", percent: 80 }]);
});

test("a reload cannot lead the gateway to itself", () => {
  start();
  const url = `http://127.0.0.1:${inside.port}`;
  expect(() => reload(makeConfig({ url }))).toThrow("is the address of this gateway itself");
  expect(inside.running.gateway.catalog.channels.get("messages")?.baseUrl.port).toBe("9");
});

test("a call that fails inside does not keep the gateway from stopping", async () => {
  start();
  const notices: string[] = [];
  const observer = {
    ...inside.running.gateway.observer,
    requestDone: () => {
      throw new Error("a fault");
    },
    notice: (_: string, text: string) => void notices.push(text),
  };
  const server = startServer(
    { ...inside.running.gateway, observer },
    { host: "127.0.0.1", port: 0 },
    { listen, console: null },
  );
  const response = await fetch(`http://127.0.0.1:${server.port}/v1/messages`, { method: "POST", body: "{}" });
  expect(response.status).toBe(401);
  await response.text();
  await server.drain();
  expect(notices.join("\n")).toContain("Error: a fault");
});
