import { describe, expect, test } from "bun:test";

import { OutputHistory } from "../../../src/billing/limits/expected-output.ts";
import { openLedger } from "../../../src/billing/ledger/ledger.ts";
import { draftOf, intentOf, newLedgerPath, optionsFor } from "../ledger/ledger-samples.ts";

describe("the expected output of a model", () => {
  test("is not known without a response", () => expect(new OutputHistory().expect("m")).toBe(null));

  test("is what the longest 1 % of its recent responses used", () => {
    const history = new OutputHistory();
    for (let output = 1; output <= 200; output += 1) history.add("m", output);
    history.add("other", 9);
    expect(history.expect("m")).toBe(198);
    expect(history.expect("other")).toBe(9);
  });

  test("follows the last 500 responses", () => {
    const history = new OutputHistory();
    for (let index = 0; index < 100; index += 1) history.add("m", 100_000);
    for (let index = 0; index < 500; index += 1) history.add("m", 10);
    expect(history.expect("m")).toBe(10);
  });

  test("is kept for the 500 models that were used last", () => {
    const history = new OutputHistory();
    for (let index = 0; index <= 500; index += 1) {
      history.add(`m${index}`, 5);
      history.add("m1", 5);
    }
    expect([history.expect("m0"), history.expect("m1"), history.expect("m500")]).toEqual([null, 5, 5]);
  });

  test("survives a restart", async () => {
    const path = newLedgerPath();
    const ledger = openLedger(optionsFor(path));
    await ledger.open(intentOf("req_1"));
    ledger.append(draftOf("req_1"));
    expect(ledger.expectOutput("claude-sonnet-4-5")).toBe(350);
    await ledger.close();
    const again = openLedger(optionsFor(path));
    expect(again.expectOutput("claude-sonnet-4-5")).toBe(350);
    await again.close();
  });

  test("does not follow a response whose output was not reported", async () => {
    const path = newLedgerPath();
    const ledger = openLedger(optionsFor(path));
    await ledger.open(intentOf("req_1"));
    ledger.append({ ...draftOf("req_1"), limit_usd: "0.5" });
    expect(ledger.expectOutput("claude-sonnet-4-5")).toBe(null);
    await ledger.close();
    const again = openLedger(optionsFor(path));
    expect(again.expectOutput("claude-sonnet-4-5")).toBe(null);
    await again.close();
  });
});
