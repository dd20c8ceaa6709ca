// A ledger of a million lines: the overview is there before all of it is read, streams go on meanwhile, and in the end
// every line is counted.

import { expect, setDefaultTimeout, test } from "bun:test";
import type { Overview } from "../../src/web/api.ts";
import { startDemoUpstream } from "../../src/demo/upstream.ts";
import { CREDENTIAL, keyOf, makeConfig, startGatewayHere } from "../harness/gateway.ts";
import { openRaw, writeRequest } from "../harness/raw.ts";
import { addUsd, formatUsd, parseUsd } from "../../src/lib/money.ts";
import { makeTempFolder } from "../harness/temp.ts";
import { hasBrowser, openBrowser } from "./browser.ts";
import { makeLongLedger } from "./long-ledger.ts";
import { knownFields, signIn, visit } from "./visitor.ts";

setDefaultTimeout(600_000);
const REPEATS = 200;
const DAYS_MS = 29 * 86_400_000;

/** It writes 1.1 GB and takes a minute. */
const isWanted = process.env["LONG_TESTS"] === "1";

test.skipIf(!isWanted)(
  "the overview of a million lines comes before they are read, at once after a restart, and a stream goes on meanwhile",
  async () => {
    const folder = makeTempFolder();
    const now = Date.now();
    const total = makeLongLedger(folder.join("ledger.jsonl"), REPEATS, [now - DAYS_MS, now]);
    const upstream = startDemoUpstream({ credential: CREDENTIAL, paceMs: 20 });
    const gateway = startGatewayHere({ config: makeConfig(upstream), console: true, folder });
    const fields = knownFields(gateway, await signIn(gateway));
    const load = async (): Promise<Overview> =>
      JSON.parse((await visit(gateway, "/console/api/overview?period=30d&by=model", { fields })).text);

    const first = await load();
    expect(first.read).toBeLessThan(1);
    expect(Number(first.spent["30d"])).toBeGreaterThan(0);
    expect(first.spans).toHaveLength(30);

    const stream = await openRaw(gateway.port);
    const body = {
      model: "demo-words-40_pace-20",
      max_tokens: 500,
      stream: true,
      messages: [{ role: "user", content: "Hello" }],
    };
    stream.send(writeRequest({ target: "/v1/messages", fields: { "x-api-key": keyOf("messages") }, body }));
    await stream.until("message_stop");
    expect((await load()).read).toBeLessThan(1);

    let last = await load();
    while (last.read < 1) last = await load();
    const [own] = await gateway.recorded(1);
    const wanted = addUsd(parseUsd(total), parseUsd(own?.chargeUsd ?? "0"));
    expect(last.spent["30d"]).toBe(formatUsd(wanted));
    expect(last.total.requests).toBe(REPEATS * 5000 + 1);

    if (hasBrowser) {
      const browser = await openBrowser();
      const page = await browser.newPage();
      await page.goto(gateway.running.console?.createLink() ?? "");
      await page.getByRole("button", { name: "Last 30 days" }).click();
      await page.getByText("1,000,001 requests").waitFor({ timeout: 60_000 });
      await browser.close();
    }
    stream.close();
    await gateway.stop();

    const next = startGatewayHere({ config: makeConfig(upstream), console: true, folder });
    const again = knownFields(next, await signIn(next));
    const target = "/console/api/overview?period=30d&by=model";
    const atOnce: Overview = JSON.parse((await visit(next, target, { fields: again })).text);
    expect([atOnce.read, atOnce.total.requests]).toEqual([1, last.total.requests]);
    expect(atOnce.spent["30d"]).toBe(last.spent["30d"]);
    await next.stop();
    upstream.stop();
    folder.remove();
  },
);
