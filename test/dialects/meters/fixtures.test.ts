// The meters must read the usage that the manifest names for a native recording, however its bytes are cut.
// The manifest and the recordings are read in place and never copied.

import { describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import type { Meter, Reading } from "../../../src/billing/usage.ts";
import { openChatMeter } from "../../../src/dialects/meters/chat.ts";
import { openContentMeter } from "../../../src/dialects/meters/content.ts";
import { MESSAGES } from "../../../src/dialects/meters/meter.ts";
import { openMessagesMeter } from "../../../src/dialects/meters/messages.ts";
import { openResponsesMeter } from "../../../src/dialects/meters/responses.ts";
import { openSseParser } from "../../../src/lib/sse.ts";
import { type Billing, NORMAL, wantedOf } from "../../harness/billing-form.ts";
import { isThere } from "../../harness/needs.ts";

const FIXTURES = new URL("../../../../shared/fixtures/", import.meta.url);
const present = isThere("recordings");

type Family = "anthropic" | "openai-responses" | "openai-chat" | "gemini";
interface Fixture {
  id: string;
  family: Family;
  file: string;
  kind: string;
  native: boolean;
  status: number;
  bytes: number;
  stream: boolean;
  expect: {
    model: string | null;
    billing: Billing;
    text?: { len: number } | null;
    tool_calls?: unknown[];
    server_tools?: unknown[];
    function_calls?: unknown[];
  };
}

const everyFixture: Fixture[] = present
  ? JSON.parse(readFileSync(new URL("manifest.json", FIXTURES), "utf8")).fixtures.map((fixture: Fixture) => ({
      ...fixture,
      family: fixture.id.split("/")[0],
    }))
  : [];
const fixtures = everyFixture.filter(({ native }) => native);

const OPEN: Record<Family, (contentType: string) => Meter> = {
  anthropic: openMessagesMeter,
  "openai-responses": openResponsesMeter,
  "openai-chat": openChatMeter,
  gemini: openContentMeter,
};

function openFor(fixture: Fixture): Meter {
  return OPEN[fixture.family](
    fixture.file.endsWith(".sse") ? "text/event-stream; charset=utf-8" : "application/json",
  );
}

function readWhole(fixture: Fixture): Reading {
  const meter = openFor(fixture);
  meter.see(bytesOf(fixture));
  return meter.read();
}

const held = new Map<string, Uint8Array>();
function bytesOf(fixture: Fixture): Uint8Array {
  const bytes = held.get(fixture.file) ?? new Uint8Array(readFileSync(new URL(fixture.file, FIXTURES)));
  held.set(fixture.file, bytes);
  return bytes;
}

/**
 * This test does not follow the manifest in two cases:
 * - An error body reports no usage. The manifest of the messages family gives it a line of zeros that names
 *   no model, and the meter gives it no line. Both cost nothing.
 * - openinference…file-uri-image-true counts 23 candidate and 67 thought tokens, and no prompt. The manifest
 *   gives it no billing. The meter reads 90 tokens of output and reports a fault: the usage is unknown.
 */
const REPORTED_IN_PART =
  "gemini/openinference--test-instrumentation-test-generate-content-with-file-uri-image-true";
const NO_LINES = [
  { model: null, kind: "message", input: 0, cache_read: 0, cache_write_5m: 0, cache_write_1h: 0, output: 0 },
];

function wanted(fixture: Fixture): unknown {
  const { billing } = fixture.expect;
  if (fixture.id === REPORTED_IN_PART) return NORMAL.gemini(readWhole(fixture));
  if (billing === null || billing === undefined) return null;
  const want: Billing = wantedOf(fixture);
  return fixture.status !== 200 && Bun.deepEquals(want.lines, NO_LINES) ? null : want;
}

function got(fixture: Fixture, reading: Reading): unknown {
  return reading.parts.length === 0 ? null : NORMAL[fixture.family](reading);
}

/** Returns the part of a reading that must not depend on where the bytes are cut. */
function settled({ estimatedOutput: _rough, ...reading }: Reading): string {
  return JSON.stringify(reading);
}

const SMALL = 6 * 1024;

/** Returns thirty places to cut a body of this length. */
const offsetsOf = (length: number): number[] => Array.from({ length: 30 }, (_, i) => (i * 7919) % length);

for (const family of ["anthropic", "openai-responses", "openai-chat", "gemini"] as const) {
  const ofFamily = fixtures.filter((fixture) => fixture.family === family);
  describe.skipIf(!present)(`recordings of ${family}`, () => {
    test("every recording, read in one piece, gives its expected usage", () => {
      expect(ofFamily.length).toBeGreaterThan(50);
      for (const fixture of ofFamily) {
        expect({ id: fixture.id, billing: got(fixture, readWhole(fixture)) }).toEqual({
          id: fixture.id,
          billing: wanted(fixture),
        });
      }
    });

    test("every recording gives the same usage if it is cut in two, at any of thirty places", () => {
      for (const fixture of ofFamily) {
        const bytes = bytesOf(fixture);
        const whole = settled(readWhole(fixture));
        for (const at of offsetsOf(bytes.length)) {
          const meter = openFor(fixture);
          meter.see(bytes.subarray(0, at));
          meter.see(bytes.subarray(at));
          const cut = settled(meter.read());
          if (cut !== whole) expect({ id: fixture.id, at, cut }).toEqual({ id: fixture.id, at, cut: whole });
        }
      }
    });

    test("every short recording gives the same usage if it is read byte by byte", () => {
      for (const fixture of ofFamily) {
        const bytes = bytesOf(fixture);
        if (bytes.length > SMALL) continue;
        const meter = openFor(fixture);
        for (let at = 0; at < bytes.length; at += 1) meter.see(bytes.subarray(at, at + 1));
        expect({ id: fixture.id, reading: settled(meter.read()) }).toEqual({
          id: fixture.id,
          reading: settled(readWhole(fixture)),
        });
      }
    });
  });
}

test.skipIf(!present)(
  "every recorded Responses stream gives the same usage if its events come as WebSocket messages",
  () => {
    const streams = fixtures.filter(
      ({ family, file }) => family === "openai-responses" && file.endsWith(".sse"),
    );
    expect(streams.length).toBeGreaterThan(50);
    for (const fixture of streams) {
      const meter = openResponsesMeter(MESSAGES);
      for (const { data } of openSseParser().push(bytesOf(fixture)))
        if (data !== "[DONE]") meter.see(Buffer.from(data));
      expect({ id: fixture.id, reading: settled(meter.read()) }).toEqual({
        id: fixture.id,
        reading: settled(readWhole(fixture)),
      });
    }
  },
);

test("a WebSocket's message that begins with a byte order mark is read", () => {
  const meter = openResponsesMeter(MESSAGES);
  const usage = { input_tokens: 3, output_tokens: 4 };
  meter.see(Buffer.from(`\ufeff${JSON.stringify({ type: "response.completed", response: { usage } })}`));
  expect(meter.read()).toMatchObject({ parts: [{ usage: { input: 3, output: 4 } }], final: true });
});

/** All recordings whose usage is doubted. Each really contradicts itself, or counts a refused attempt. */
const DOUBTED: Readonly<Record<string, string>> = {
  "anthropic/vercel-ai--anthropic-fallback-v2":
    "the upstream's iterations[0] has no output: it may have been refused, and cost nothing",
  "gemini/openinference--test-instrumentation-test-generate-content-with-file-uri-image-true":
    "the upstream's promptTokenCount is missing beside the other counts",
  "gemini/pydantic-ai--test-structured-output-test-native-output-with-builtin-tools-stream":
    "the upstream's candidatesTokenCount is missing beside the other counts",
  // Vercel's count of the output leaves out the thoughts.
  "openai-chat/fantasy--testvercelthinking-gemini-3-pro-preview-thinking-0":
    "the upstream's completion_tokens_details is more than the total that includes it",
};

test.skipIf(!present)("the gateway doubts the counts of the recordings in DOUBTED, and of no others", () => {
  const doubted = everyFixture.flatMap((fixture) => {
    const texts = readWhole(fixture).faults?.map(({ text }) => text) ?? [];
    return texts.length === 0 ? [] : [[fixture.id, texts.join("; ")]];
  });
  expect(Object.fromEntries(doubted)).toEqual(DOUBTED);
});

function isRunningText({ kind, file, expect: { text, ...found } }: Fixture): boolean {
  const calls = [found.tool_calls, found.server_tools, found.function_calls].flatMap((list) => list ?? []);
  return kind === "recorded" && file.endsWith(".sse") && (text?.len ?? 0) >= 200 && calls.length === 0;
}

describe.skipIf(!present)("a stream's estimate of the output is near the visible output", () => {
  test("most recorded streams of plain text have an estimated output between half and twice the visible output", () => {
    const ratios = fixtures.filter(isRunningText).flatMap((fixture) => {
      const { parts, estimatedOutput } = readWhole(fixture);
      const { output = 0, reasoning = 0 } = parts.at(-1)?.usage ?? {};
      // Only Anthropic shows thoughts. Other providers hide them, so that the estimate leaves them out.
      return [estimatedOutput / (fixture.family === "anthropic" ? output : output - reasoning)];
    });
    expect(ratios.length).toBeGreaterThan(10);
    const near = ratios.filter((ratio) => ratio >= 0.5 && ratio <= 2);
    expect(near.length / ratios.length).toBeGreaterThan(0.8);
    expect(ratios.toSorted((a, b) => a - b)[Math.floor(ratios.length / 2)]).toBeWithin(0.8, 1.25);
  });
});
