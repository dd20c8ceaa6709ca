// What a bill reserves, and when it gives that back.

import { afterEach, expect, test } from "bun:test";
import { renameSync } from "node:fs";
import type { LimitUse } from "../../../src/billing/limits/alerts.ts";
import { openBill } from "../../../src/gateway/bill/bill.ts";
import { recordBill, settleFailure } from "../../../src/gateway/bill/settle.ts";
import { Request } from "../../../src/gateway/request.ts";
import { GatewayError } from "../../../src/lib/errors.ts";
import { keyOf } from "../../harness/gateway.ts";
import { openScripted, type Scripted } from "../scripted.ts";

let scripted: Scripted;
afterEach(() => scripted.stop());

async function limit(limits: object): Promise<void> {
  const keys = [{ name: "k", group: "g", secret: keyOf("messages"), limits }];
  scripted = await openScripted({ channels: { a: [] }, more: { keys } });
}

/** Another request, of this agent, some minutes later.  */
async function open(agent?: string, minutes = 0) {
  const { request, gateway } = scripted;
  const { exchange, time, arrived } = request;
  const now = (): number => Date.now() + minutes * 60_000;
  const id = `${request.id}_${agent}_${minutes}_${Math.random()}`;
  const { admitted, body, candidates, model, overrides } = request;
  const client = agent === undefined ? {} : { session: "s", agent };
  const another = Object.assign(new Request({ id, exchange, time, arrived }, request), {
    admitted,
    body,
    candidates,
    model,
    overrides,
    client,
  });
  try {
    await openBill(another, { ...gateway, now });
    return { bill: another };
  } catch (error) {
    return { error: error instanceof GatewayError ? error.code : error };
  }
}

test("a request that the ledger refuses reserves nothing", async () => {
  await limit({ concurrent_requests: 2 });
  const { path } = scripted.gateway.catalog.ledger;
  renameSync(path, `${path}.moved`);
  for (let count = 0; count < 3; count += 1) expect(await open()).toEqual({ error: "ledger_unwritable" });
  renameSync(`${path}.moved`, path);
});

test("a request that a limit refuses opens no agent", async () => {
  await limit({ concurrent_requests: 1, agents: 2 });
  expect(await open("x")).toEqual({ error: "rate_limited" });
  scripted.request.admission.release();
  expect(await open("y", 6)).toHaveProperty("bill");
});

test("an agent is open while its request runs, and for five minutes afterwards", async () => {
  await limit({ agents: 2 });
  const first = await open("x");
  expect(await open("y", 6)).toEqual({ error: "limit_spent" });
  if ("bill" in first) settleFailure(first.bill, GONE, scripted.gateway);
  expect(await open("y", 4)).toEqual({ error: "limit_spent" });
  expect(await open("y", 6)).toHaveProperty("bill");
});

const GONE = new GatewayError("client_gone", "The client disconnected.");

test("what is reserved is free again, even if the line cannot be added", async () => {
  await limit({ concurrent_requests: 1 });
  const { request, gateway } = scripted;
  request.attempts.push({ channel: "a", status: 200 });
  gateway.ledger.discard(request.id);
  settleFailure(request, GONE, gateway);
  const faults: string[] = [];
  const observer = { ...gateway.observer, notice: (_: string, text: string) => void faults.push(text) };
  recordBill(request, { ...gateway, observer });
  expect(faults.at(-1)).toContain("is not open");
  expect(await open()).toHaveProperty("bill");
});

test("a session that comes near its limit is reported with its line", async () => {
  await limit({ usd_per_session: "5" });
  const opened = await open("x");
  if (!("bill" in opened)) throw new Error("refused");
  const uses: LimitUse[] = [];
  const alerts = { ...scripted.gateway.alerts, check: (some: Iterable<LimitUse>) => void uses.push(...some) };
  opened.bill.attempts.push({ channel: "a", status: 200 });
  settleFailure(opened.bill, GONE, scripted.gateway);
  recordBill(opened.bill, { ...scripted.gateway, alerts });
  expect(uses).toMatchObject([{ holder: { kind: "session", name: "s" }, limit: "usd_per_session" }]);
});
