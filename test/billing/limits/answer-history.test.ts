import { describe, expect, test } from "bun:test";

import { AnswerHistory } from "../../../src/billing/limits/answer-history.ts";
import { openLedger } from "../../../src/billing/ledger/ledger.ts";
import { draftOf, intentOf, newLedgerPath, optionsFor } from "../ledger/ledger-samples.ts";

describe("the expected answer of a model", () => {
  test("is not known without one", () => expect(new AnswerHistory().expect("m")).toBe(null));

  test("has the mean of its recent outputs and times, and what the longest 1 % used", () => {
    const history = new AnswerHistory();
    for (let output = 1; output <= 200; output += 1) history.add("m", output, output * 10);
    history.add("other", 9, null);
    expect(history.expect("m")).toEqual({ output: 101, longest: 198, seconds: 1.005, isOwn: true });
    expect(history.expect("other")).toEqual({ output: 9, longest: 9, seconds: null, isOwn: true });
  });

  test("follows the last 500 answers", () => {
    const history = new AnswerHistory();
    for (let index = 0; index < 100; index += 1) history.add("m", 100_000, 9000);
    expect(history.expect("m")).toMatchObject({ output: 100_000, longest: 100_000 });
    for (let index = 0; index < 500; index += 1) history.add("m", 10, 1000);
    expect(history.expect("m")).toEqual({ output: 10, longest: 10, seconds: 1, isOwn: true });
  });

  test("is kept for the 500 models that were used last", () => {
    const history = new AnswerHistory();
    for (let index = 0; index <= 500; index += 1) {
      history.add(`m${index}`, 5, null);
      history.add("m1", 5, null);
    }
    const isKnown = (model: string): boolean => history.expect(model) !== null;
    expect([isKnown("m0"), isKnown("m1"), isKnown("m500")]).toEqual([false, true, true]);
  });

  test.each([
    ["claude-opus-5-5", 300],
    ["anthropic/claude-opus-4.8", 300],
    ["us.anthropic.claude-opus-4-1-20250805-v1:0", 300],
    ["claude-fable-5", 200],
    ["GPT-6.2-sol", 40],
    ["gemini-3.8-flash", null],
  ])("of %s, which has none, is that of the most similar model", (model, output) => {
    const history = new AnswerHistory();
    history.add("claude-haiku-4-5", 200, null);
    history.add("claude-opus-4-8", 300, null);
    history.add("gpt-5.4", 40, null);
    expect(history.expect(model)?.output ?? null).toBe(output);
    expect(history.expect(model)?.isOwn ?? false).toBe(false);
  });

  test("survives a restart", async () => {
    const path = newLedgerPath();
    const known = { output: 350, longest: 350, seconds: 4.12, isOwn: true };
    const ledger = openLedger(optionsFor(path));
    await ledger.open(intentOf("req_1"));
    ledger.append(draftOf("req_1"));
    expect(ledger.expectAnswer("claude-sonnet-4-5")).toEqual(known);
    await ledger.close();
    const again = openLedger(optionsFor(path));
    expect(again.expectAnswer("claude-sonnet-4-5")).toEqual(known);
    await again.close();
  });

  test("does not follow a response whose output was not reported", async () => {
    const path = newLedgerPath();
    const ledger = openLedger(optionsFor(path));
    await ledger.open(intentOf("req_1"));
    ledger.append({ ...draftOf("req_1"), limit_usd: "0.5" });
    expect(ledger.expectAnswer("claude-sonnet-4-5")).toBe(null);
    await ledger.close();
    const again = openLedger(optionsFor(path));
    expect(again.expectAnswer("claude-sonnet-4-5")).toBe(null);
    await again.close();
  });
});
