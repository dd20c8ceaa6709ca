import { describe, expect, test } from "bun:test";
import { appendFileSync, readFileSync, renameSync, truncateSync, writeFileSync } from "node:fs";
import { assert, integer, property } from "fast-check";
import {
  encodeLine,
  GENESIS,
  hashLine,
  type CorrectionDraft,
  type LineDraft,
} from "../../../src/billing/ledger/line.ts";
import { encodeStart, type NotedEnd } from "../../../src/billing/ledger/journal.ts";
import { openLedger } from "../../../src/billing/ledger/ledger.ts";
import {
  type Finding,
  parseAnchor,
  verifyLedger,
  type VerifyOptions,
} from "../../../src/billing/verify/verify.ts";
import { CHARGE_PLACES, formatDecimal } from "../../../src/lib/money.ts";
import { draftOf, intentOf, makeTable, newLedgerPath, optionsFor } from "../ledger/ledger-samples.ts";

const STRICT: VerifyOptions = { partial: false, running: false };

/** The amount of a sample line: 12 × $3 + 11000 × $0.3 + 420 × $6 + 350 × $15, per million. */
const AMOUNT = "0.011106";
const GIVE = "but usage, prices and multiplier give";

function findingsOf(path: string, options = STRICT): string[] {
  const findings: string[] = [];
  verifyLedger(path, options, (finding: Finding) =>
    findings.push(`${finding.file}:${finding.line} ${finding.problem}`),
  );
  return findings;
}

function notedAt(offset: number, prev: string): NotedEnd {
  return { end: { offset, prev }, synced: null, boot: null };
}

/** Writes a ledger whose chain is right, whatever its lines say. */
function writeChain(drafts: readonly LineDraft[]): string {
  const path = newLedgerPath();
  let prev = GENESIS;
  const texts = drafts.map((draft) => {
    const text = encodeLine(draft, prev);
    prev = hashLine(text);
    return text;
  });
  writeFileSync(path, texts.map((text) => `${text}\n`).join(""));
  return path;
}

const THREE = [draftOf("req_1"), draftOf("req_2"), draftOf("req_3")];

test("`verify` finds no fault in a ledger that the gateway wrote, rotated and recovered", async () => {
  const path = newLedgerPath();
  let now = Date.parse("2026-01-31T12:00:00Z");
  const options = optionsFor(path, { rotate: { monthly: true }, now: () => now });
  const ledger = openLedger(options);
  for (let number = 0; number < 20; number += 1) {
    void ledger.open(intentOf(`req_${number}`));
    ledger.append(draftOf(`req_${number}`, { key: number % 2 === 0 ? "laptop" : "schlüssel-日本" }));
    await new Promise<void>((resolve) => setImmediate(resolve));
    now += 5 * 86_400_000;
  }
  void ledger.open(intentOf("open"));
  await ledger.close();
  await openLedger(options).close();
  const verdict = verifyLedger(path, STRICT, (finding) => expect(finding).toBeUndefined());
  expect(verdict).toMatchObject({ lines: 21, corrections: 0, findings: 0 });
  expect(verdict.files).toBeGreaterThan(3);
});

test("`verify` finds no lines and no fault in a missing ledger", () => {
  expect(verifyLedger(newLedgerPath(), STRICT, () => undefined)).toEqual({
    files: 0,
    lines: 0,
    corrections: 0,
    findings: 0,
    unchecked: 0,
    notes: [],
  });
});

describe("P139: `verify` checks the chain", () => {
  test("any one changed byte is found, wherever it is", () => {
    const whole = writeChain(THREE);
    const bytes = readFileSync(whole);
    assert(
      property(integer({ min: 0, max: bytes.length - 1 }), integer({ min: 1, max: 255 }), (at, change) => {
        const changed = Buffer.from(bytes);
        changed[at] = (changed[at] ?? 0) ^ change;
        const path = newLedgerPath();
        writeFileSync(path, changed);
        const isLastLine = at > bytes.lastIndexOf(10, bytes.length - 2);
        // No next line has the hash of the last line, so a change of the last line may not show.
        if (!isLastLine) expect(findingsOf(path).length).toBeGreaterThan(0);
      }),
      { numRuns: 300, seed: 1 },
    );
  });

  test("the hash in the last line is checked to its last digit", () => {
    const path = writeChain(THREE);
    const text = readFileSync(path, "utf8");
    const unseen = Array.from({ length: 64 }, (_, place) => text.length - '"}\n'.length - 1 - place).filter(
      (at) => {
        const other = text[at] === "0" ? "1" : "0";
        writeFileSync(path, `${text.slice(0, at)}${other}${text.slice(at + 1)}`);
        return findingsOf(path).length === 0;
      },
    );
    expect(unseen).toEqual([]);
  });

  test("a request with two lines is found even if the chain was adapted", () => {
    expect(findingsOf(writeChain([draftOf("req_1"), draftOf("req_2"), draftOf("req_1")]))).toEqual([
      "ledger.jsonl:3 this request has a line already",
    ]);
  });

  test.each(["", "12", "x:9f86", `1:${"g".repeat(64)}`])("the anchor %j is not accepted", (text) => {
    expect(parseAnchor(text)).toBe(null);
  });

  test("the chain continues across rotated files, and a missing file is found", () => {
    const lines = readFileSync(writeChain(THREE), "utf8").trim().split("\n");
    const path = newLedgerPath();
    const name = (suffix: string) => path.replace(".jsonl", `-${suffix}.jsonl`);
    writeFileSync(name("2026-09"), `${lines[0]}\n`);
    writeFileSync(name("2026-09.2"), `${lines[1]}\n`);
    writeFileSync(path, `${lines[2]}\n`);
    expect(findingsOf(path)).toEqual([]);
    truncateSync(name("2026-09.2"), (lines[1]?.length ?? 0) - 9);
    expect(findingsOf(path)).toEqual([
      "ledger-2026-09.2.jsonl:1 the file ends in a torn line",
      "ledger.jsonl:1 it does not follow ledger-2026-09.2.jsonl:1: that line was changed, lines between them are missing, or this one does not belong here",
    ]);
    renameSync(name("2026-09.2"), name("elsewhere"));
    expect(findingsOf(path)).toEqual([
      "ledger.jsonl:1 it does not follow ledger-2026-09.jsonl:1: that line was changed, lines between them are missing, or this one does not belong here",
    ]);
  });

  test("the chain is checked as it was when `verify` began, whatever a gateway writes and rotates meanwhile", () => {
    const wrong = draftOf("req_1", { charge_usd: "1" });
    const later = [draftOf("req_4"), draftOf("req_5")];
    const texts = readFileSync(writeChain([wrong, draftOf("req_2"), ...later]), "utf8").split(/(?<=\n)/);
    const [first = "", second = "", third = "", fourth = ""] = texts;
    const path = newLedgerPath();
    writeFileSync(path.replace(".jsonl", "-2026-09.jsonl"), first);
    writeFileSync(path, second);
    const findings: string[] = [];
    const verdict = verifyLedger(path, { partial: false, running: true }, ({ problem }) => {
      findings.push(problem);
      appendFileSync(path, third);
      renameSync(path, path.replace(".jsonl", "-2026-10.jsonl"));
      writeFileSync(path, fourth);
      writeFileSync(`${path}.open`, encodeStart(notedAt(fourth.length, hashLine(fourth.trimEnd()))));
    });
    expect(findings).toEqual([expect.stringContaining("charge_usd is 1")]);
    expect(verdict).toMatchObject({ files: 2, lines: 3 });
    writeFileSync(`${path}.open`, encodeStart(notedAt(0, GENESIS)));
    expect(findingsOf(path, { partial: false, running: true })).toHaveLength(1);
  });

  test("a torn last line is found, unless a gateway is writing it", () => {
    const path = writeChain(THREE);
    appendFileSync(path, '{"v":1,"id":"req_4"');
    expect(findingsOf(path)).toEqual(["ledger.jsonl:4 the last line is torn: its end is missing"]);
    expect(findingsOf(path, { partial: false, running: true })).toEqual([]);
    appendFileSync(path, "\n");
    expect(findingsOf(path)).toEqual(["ledger.jsonl:4 this is not a ledger line: it is torn or overwritten"]);
  });
});

test("a last line that lacks only its newline is checked like the others, and is not called torn", () => {
  const path = writeChain(THREE);
  const text = readFileSync(path, "utf8");
  writeFileSync(path, text.trimEnd());
  const unended = "ledger.jsonl:3 the last line lacks its newline";
  expect(findingsOf(path)).toEqual([unended]);
  expect(findingsOf(path, { partial: false, running: true })).toEqual([]);
  writeFileSync(path, text.trimEnd().replace(/"charge_usd":"[^"]*"(?!.*\n)/, '"charge_usd":"1"'));
  expect(findingsOf(path)).toEqual([expect.stringContaining("charge_usd is 1"), unended]);
});

/** A line with the amount that the seller named. */
const NAMED: Partial<LineDraft> = {
  prices: null,
  price_source: "reported",
  provider_usd: "0.5",
  official_usd: "0.5",
  charge_usd: "0.5",
};

test("lines with an amount of the seller have no fault, and a note says that verify did not derive it", () => {
  const parts = [
    { model: "m", pass: "message", usage: { input: 1 }, prices: null, tier: null, official_usd: null },
  ];
  const path = writeChain([
    draftOf("req_0", NAMED),
    draftOf("req_1", { ...NAMED, usage: { input: 1 }, parts }),
    draftOf("req_2", { provider_usd: "0.5" }),
  ]);
  expect(findingsOf(path)).toEqual([]);
  const { notes } = verifyLedger(path, STRICT, () => undefined);
  expect(notes).toContainEqual(expect.stringContaining("(price_source: reported): 2."));
});

describe("P139: `verify` checks each line", () => {
  function writeWith(change: object): string {
    const path = newLedgerPath();
    const line = { ...JSON.parse(encodeLine(draftOf("req_1"), GENESIS)), ...change };
    writeFileSync(path, `${JSON.stringify(line)}\n`);
    return path;
  }

  const cases: ReadonlyArray<readonly [string, Partial<LineDraft>, string]> = [
    ["a wrong charge", { charge_usd: "0.011107" }, `charge_usd is 0.011107, ${GIVE} ${AMOUNT}`],
    ["a wrong official amount", { official_usd: "0.01" }, `official_usd is 0.01, ${GIVE} ${AMOUNT}`],
    [
      "a charge with one zero more",
      { charge_usd: "0.0111060" },
      `charge_usd is 0.0111060, ${GIVE} ${AMOUNT}`,
    ],
    ["a wrong multiplier", { multiplier: "2" }, `charge_usd is 0.011106, ${GIVE} 0.022212`],
    ["a wrong count", { usage: { output: 1 } }, `official_usd is 0.011106, ${GIVE} 0.000015`],
    ["a wrong price", { prices: { input: "3" } }, `official_usd is 0.011106, ${GIVE} null`],
    [
      "a charge that does not follow from the seller's amount",
      { ...NAMED, charge_usd: "0.4" },
      `charge_usd is 0.4, ${GIVE} 0.5`,
    ],
    [
      "another amount than the seller named",
      { ...NAMED, official_usd: "0.4" },
      `official_usd is 0.4, ${GIVE} 0.5`,
    ],
    [
      "an amount that no seller named",
      { ...NAMED, provider_usd: undefined },
      `official_usd is 0.5, ${GIVE} null`,
    ],
    ["an amount of unknown usage", { basis: "unknown" }, "basis is unknown, but official_usd is 0.011106"],
    ["an amount without a price", { basis: "unpriced" }, "basis is unpriced, but official_usd is 0.011106"],
    [
      "no amount, though the basis is exact",
      { official_usd: null, charge_usd: null, prices: null },
      "basis is exact, but official_usd is null",
    ],
    [
      "a wrong cost of a miss",
      { cache: { missed: 100, usd: "9", because: "tools_changed" } },
      `cache.usd is 9, ${GIVE} `,
    ],
    [
      "a limit_usd below what a plan has paid",
      { paid_by: "plan", multiplier: "0", charge_usd: "0", limit_usd: "0.01" },
      `limit_usd is 0.01, but usage and prices give ${AMOUNT}`,
    ],
    ["a negative count", { usage: { input: -1 } }, "usage.input: Too small"],
    ["a multiplier that is not a decimal", { multiplier: "1e3" }, "multiplier: a decimal without"],
  ];
  test.each(cases)("`verify` finds a line with %s", (_, change, problem) => {
    const [finding, ...more] = findingsOf(writeChain([draftOf("req_0"), draftOf("req_1", change)]));
    expect(finding).toStartWith(`ledger.jsonl:2 ${problem}`);
    expect(more).toEqual([]);
  });

  test.each([
    ...["id", "time", "key", "group", "platform", "channel", "model", "endpoint"].map(
      (name) => [name, 5] as const,
    ),
    ["v", 2],
    ["outcome", "done"],
    ["basis", "guessed"],
    ["stream", "true"],
    ["attempts", {}],
  ])("a line whose %s is %j is found by the schema", (name, value) => {
    expect(findingsOf(writeWith({ [name]: value }))[0]).toStartWith(`ledger.jsonl:1 ${name}: `);
  });

  test("a line whose prev is not a hash is found, although a partial ledger may begin with any hash", () => {
    const [finding] = findingsOf(writeWith({ prev: 5 }), { ...STRICT, partial: true });
    expect(finding).toStartWith("ledger.jsonl:1 prev: ");
  });

  test.each<[string, object]>([
    ["a multiplier that is not a text", { multiplier: 1 }],
    ["a price that is not a text", { prices: { input: 3 } }],
    ["a count that is not whole", { usage: { input: 0.5 } }],
    ["no usage", { usage: null }],
    ["parts that are not a list", { parts: {} }],
    ["a part that is not an object", { parts: [5] }],
    ["a part without usage", { parts: [{ prices: {} }] }],
    ["a part without prices", { parts: [{ usage: {} }] }],
    ["one good part and one that is null", { parts: [{ usage: {}, prices: {} }, null] }],
  ])("a line with %s is found", (_, change) => {
    const names = Object.keys(change).map((name) => expect.stringContaining(`ledger.jsonl:1 ${name}`));
    expect(findingsOf(writeWith(change))).toEqual(names);
  });

  test("`verify` finds no fault in unpriced and unknown lines, which have no amounts", () => {
    const none = { official_usd: null, charge_usd: null, prices: null };
    expect(
      findingsOf(
        writeChain([
          draftOf("req_1", { ...none, basis: "unpriced" }),
          draftOf("req_2", { ...none, basis: "unknown", usage: {} }),
          draftOf("req_3", { usage: {}, prices: {}, official_usd: "0", charge_usd: "0" }),
        ]),
      ),
    ).toEqual([]);
  });

  test("the least amount and the unpriced usage of a line are checked", () => {
    const least = (more: object, own: Partial<LineDraft> = {}) =>
      writeChain([
        draftOf("req_1", {
          basis: "unpriced",
          usage: { input: 1_000_000, code_interpreter: 2 },
          prices: { input: "3" },
          official_usd: null,
          multiplier: "0.5",
          charge_usd: null,
          unpriced_usage: { code_interpreter: 2 },
          at_least_usd: "1.5",
          ...more,
          ...own,
        }),
      ]);
    expect(findingsOf(least({}))).toEqual([]);
    expect(findingsOf(least({ at_least_usd: undefined, unpriced_usage: undefined }))).toEqual([]);
    expect(findingsOf(least({ at_least_usd: "1.6" }))[0]).toContain("at_least_usd is 1.6");
    expect(findingsOf(least({ at_least_usd: undefined }))[0]).toContain("at_least_usd is undefined");
    expect(findingsOf(least({ unpriced_usage: { code_interpreter: 3 } }))[0]).toContain(
      "unpriced_usage.code_interpreter is 3",
    );
    expect(findingsOf(least({ unpriced_usage: {} }))[0]).toContain("unpriced_usage.code_interpreter is 0");
    // One wrong line is found among others that are right.
    const many = writeChain(
      Array.from({ length: 5 }, (_, index) =>
        draftOf(`req_${index}`, {
          basis: "unpriced",
          usage: { input: 1_000_000, code_interpreter: 2 },
          prices: { input: "3" },
          official_usd: null,
          charge_usd: null,
          unpriced_usage: { code_interpreter: 2 },
          at_least_usd: index === 3 ? "4" : "3",
        }),
      ),
    );
    expect(findingsOf(many)).toHaveLength(1);
  });

  test("each part's amount and the sum of the parts' usage are checked", () => {
    const part = (model: string, input: number, amount: string) => ({
      model,
      pass: "message",
      usage: { input },
      prices: { input: "3" },
      tier: "standard",
      official_usd: amount,
    });
    const whole = {
      usage: { input: 3 },
      parts: [part("a", 1, "0.000003"), part("b", 2, "0.000006")],
      official_usd: "0.000009",
      charge_usd: "0.000009",
    };
    expect(findingsOf(writeChain([draftOf("req_1", whole)]))).toEqual([]);
    expect(findingsOf(writeChain([draftOf("req_1", { ...whole, usage: { input: 4 } })]))).toEqual([
      "ledger.jsonl:1 usage.input is 4, but the parts have 3",
    ]);
    // The line counts this kind, but its parts do not. The kind is free, so no amount shows the fault.
    const silent = { ...whole, usage: { input: 3, reasoning: 1 } };
    expect(findingsOf(writeChain([draftOf("req_1", silent)]))).toEqual([
      "ledger.jsonl:1 usage.reasoning is 1, but the parts have 0",
    ]);
    const named = {
      ...part("a", 3, "0.000009"),
      usage: { input: 3, constructor: 2 },
      prices: { input: "3", constructor: "0" },
    };
    expect(
      findingsOf(writeChain([draftOf("req_1", { ...whole, usage: named.usage, parts: [named] })])),
    ).toEqual([]);
    const [first = part("a", 1, "0.000003"), ...others] = whole.parts;
    const reported = { ...whole, parts: [{ ...first, usage: { input: 1, reasoning: 1 } }, ...others] };
    expect(findingsOf(writeChain([draftOf("req_1", reported), draftOf("req_2", reported)]))).toEqual([
      "ledger.jsonl:1 usage.reasoning is 0, but the parts have 1",
      "ledger.jsonl:2 usage.reasoning is 0, but the parts have 1",
    ]);
    const odd = [part("a", 1, "0.000004"), part("b", 2, "0.000005")];
    expect(findingsOf(writeChain([draftOf("req_1", { ...whole, parts: odd })]))).toEqual([
      "ledger.jsonl:1 part 1: official_usd is 0.000004, but usage, prices and multiplier give 0.000003",
    ]);
  });

  test("a change of any digit of a part's counts, prices and amounts is found", () => {
    const lineOf = (number: number) => {
      const part = (usage: Record<string, number>, pico: number) => ({
        model: "m",
        pass: "message",
        usage,
        prices: "output" in usage ? { input: "3", output: "15" } : { input: "3" },
        tier: null,
        official_usd: formatDecimal({ units: BigInt(pico), scale: CHARGE_PLACES }),
      });
      const [first, second] = [3_000_000 * number, 3_000_000 * 12 + 15_000_000 * number];
      return draftOf(`req_${number}`, {
        usage: { input: number + 12, output: number },
        parts: [part({ input: number }, first), part({ input: 12, output: number }, second)],
        raw_usage: null,
        prices: {},
        official_usd: formatDecimal({ units: BigInt(first + second), scale: CHARGE_PLACES }),
        multiplier: "0.5",
        charge_usd: formatDecimal({ units: BigInt((first + second) / 2), scale: CHARGE_PLACES }),
      });
    };
    const path = writeChain([lineOf(117), lineOf(345), lineOf(689)]);
    expect(findingsOf(path)).toEqual([]);
    const text = readFileSync(path, "utf8");
    const from = text.indexOf('"usage"', text.lastIndexOf('"id"'));
    const to = text.lastIndexOf('"first_byte_ms"');
    const digits = [...text.matchAll(/\d/g)].filter(({ index }) => index > from && index < to);
    const unseen = digits.filter(({ 0: digit, index }) => {
      writeFileSync(path, `${text.slice(0, index)}${(Number(digit) + 1) % 10}${text.slice(index + 1)}`);
      return findingsOf(path).length === 0;
    });
    expect(digits.length).toBeGreaterThan(40);
    expect(unseen.map(({ index }) => text.slice(index - 20, index + 5))).toEqual([]);
  });
});

describe("P139: `verify` checks corrections", () => {
  const correctionOf = (id: string, more: Partial<CorrectionDraft> = {}): CorrectionDraft => {
    const { time, key, group, platform, channel, model } = draftOf("req_1");
    return {
      id,
      time: "2026-11-21T00:00:00.000Z",
      corrects: "req_1",
      request_time: time,
      key,
      group,
      platform,
      channel,
      model,
      usage: { output: 1 },
      prices: { output: "15" },
      price_source: "test",
      tier: "standard",
      official_usd: "0.000015",
      multiplier: "1",
      charge_usd: "0.000015",
      was: { official_usd: AMOUNT, charge_usd: AMOUNT },
      ...more,
    };
  };

  function writeCorrected(corrections: readonly CorrectionDraft[]): string {
    const path = newLedgerPath();
    let text = encodeLine(draftOf("req_1"), GENESIS);
    const texts = [text];
    for (const correction of corrections) texts.push((text = encodeLine(correction, hashLine(text))));
    writeFileSync(path, texts.map((each) => `${each}\n`).join(""));
    return path;
  }

  test("a second correction has to replace the amounts of the first", () => {
    const second = correctionOf("cor_2", {
      usage: {},
      official_usd: "0",
      charge_usd: "0",
      was: { official_usd: "0.000015", charge_usd: "0.000015" },
    });
    const path = writeCorrected([correctionOf("cor_1"), second]);
    expect(findingsOf(path)).toEqual([]);
    expect(verifyLedger(path, STRICT, () => undefined)).toMatchObject({
      files: 1,
      lines: 3,
      corrections: 2,
      findings: 0,
    });
    expect(findingsOf(writeCorrected([second]))).toEqual([
      "ledger.jsonl:2 it replaces a charge of req_1 that is not the one in force",
    ]);
  });

  test("a correction of a missing request, or with a wrong amount, is found", () => {
    expect(findingsOf(writeCorrected([correctionOf("cor_1", { corrects: "req_9" })]))).toEqual([
      "ledger.jsonl:2 it corrects req_9, which has no line before it",
    ]);
    expect(findingsOf(writeCorrected([correctionOf("cor_1", { charge_usd: "1" })]))[0]).toContain(
      "charge_usd is 1, but",
    );
    // In a part of a ledger, a correction's request may be in another part.
    const path = writeCorrected([correctionOf("cor_1", { corrects: "req_9" })]);
    expect(findingsOf(path, { ...STRICT, partial: true })).toEqual([]);
  });

  test("lines with letters outside ASCII are not counted as corrections", () => {
    const path = writeChain([draftOf("req_1", { key: "schlüssel" }), draftOf("req_2")]);
    expect(verifyLedger(path, STRICT, () => undefined)).toMatchObject({
      lines: 2,
      corrections: 0,
      findings: 0,
    });
  });

  test("the schema finds a correction without the amounts that it replaces", () => {
    for (const change of [{ was: undefined }, { was: null }, { corrects: 5 }]) {
      const path = writeCorrected([correctionOf("cor_1")]);
      const [first = "", second = ""] = readFileSync(path, "utf8").split("\n");
      writeFileSync(path, `${first}\n${JSON.stringify({ ...JSON.parse(second), ...change })}\n`);
      const [name = ""] = Object.keys(change);
      const findings = findingsOf(path);
      expect(findings).toHaveLength(1);
      expect(findings[0]).toStartWith(`ledger.jsonl:2 ${name}: `);
    }
  });
});

test("an index with other sums than the ledger is found, but an index without the last lines is no fault", () => {
  const drafts = Array.from({ length: 6 }, (_, index) => draftOf(`req_${index}`));
  const path = writeChain(drafts.slice(0, 4));
  makeTable(path);
  const whole = writeChain(drafts);
  writeFileSync(path, readFileSync(whole));
  expect(findingsOf(path)).toEqual([]);
  const bytes = readFileSync(`${path}.index`, "latin1").replaceAll("sonnet", "sonnel");
  writeFileSync(`${path}.index`, bytes, "latin1");
  expect(findingsOf(path)).toEqual([expect.stringContaining("the index has other sums than the ledger")]);
});
