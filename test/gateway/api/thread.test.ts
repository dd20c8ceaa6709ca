import { Database } from "bun:sqlite";
import { expect, test } from "bun:test";
import { openLedger } from "../../../src/billing/ledger/ledger.ts";
import { ReportThread } from "../../../src/gateway/api/thread.ts";
import { bill, optionsFor } from "../../billing/ledger/ledger-samples.ts";
import { makeConfig, startGatewayHere } from "../../harness/gateway.ts";
import { makeTempFolder } from "../../harness/temp.ts";
import { startDemoUpstream } from "../../harness/upstreams/demo-upstream.ts";

test("the thread that makes reports rebuilds a changed index, and on close it refuses the questions that are still open", async () => {
  using folder = makeTempFolder();
  const path = folder.join("ledger.jsonl");
  const ledger = openLedger(optionsFor(path));
  await bill(ledger, "req_1");
  await ledger.close();
  const database = new Database(`${path}.index`);
  database.run("UPDATE lines SET output = 9");
  database.close();
  const upstream = startDemoUpstream();
  const gateway = startGatewayHere({ config: makeConfig(upstream), folder });
  const thread = new ReportThread(gateway.running.gateway);
  const { total } = await thread.ask("overview", { period: "all" });
  expect([total.usage["output"], gateway.notices]).toEqual([350, [expect.stringContaining("other sums")]]);
  const open = [thread.ask("overview", {}), thread.ask("sessions", {})];
  thread.close();
  for (const each of open) expect(each).rejects.toThrow("The gateway stops.");
  await gateway.stop();
  upstream.stop();
});
