// Recorded traffic of real platforms through the gateway: passed byte for byte, wherever
// it is cut, and billed like the recording.

import { integer, sample, uniqueArray } from "fast-check";
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import {
  askForFixture,
  type Fixture,
  hasFixtures,
  listFixtures,
  readFixture,
  replayFixture,
} from "../../harness/fixtures.ts";
import type { RequestLines } from "../../harness/raw.ts";
import { bearer, openWorld, type World } from "../world.ts";

const KEY_OF = { anthropic: "messages", "openai-responses": "responses", gemini: "content" } as const;
type Family = keyof typeof KEY_OF;

/** Chat recordings come from an upstream that speaks chat, which no channel does. */
const FAMILIES: readonly Family[] = ["anthropic", "openai-responses", "gemini"];
const SEED = 20261120;

/** Recordings of streams that broke, or that lack their end. */
const BROKEN = /\/spliced--(?!content-filter|usage-missing)|--openai-error-1$|--azure-deepseek-reasoning-1$/;

let world: World;
beforeAll(() => {
  world = openWorld();
});
afterAll(() => world.stop());

/** Whole recordings; a recording of a cut stream ends with an error here, and has its own test. */
function listWhole(family: Family): readonly Fixture[] {
  return listFixtures((fixture) => fixture.family === family && fixture.status < 400);
}

function makeCuts(size: number, seed: number): number[] {
  const [cuts = []] = sample(
    uniqueArray(integer({ min: 1, max: Math.max(1, size - 1) }), { minLength: 1, maxLength: 40 }),
    { numRuns: 1, seed },
  );
  return cuts;
}

async function expectSame(fixture: Fixture, request: RequestLines, seed: number): Promise<void> {
  const bytes = readFixture(fixture);
  world.upstream.next({ answer: replayFixture(fixture, makeCuts(bytes.length, seed)) });
  const { answer, lines } = await world.trace(request);
  const same = answer.body.subarray(0, bytes.length).equals(bytes);
  expect([fixture.id, answer.status, same]).toEqual([fixture.id, fixture.status, true]);
  expect([fixture.id, lines.length]).toEqual([fixture.id, 1]);
  const outcome = String(lines[0]!["outcome"]);
  if (!BROKEN.test(fixture.id)) {
    expect([fixture.id, outcome]).toEqual([fixture.id, "complete"]);
    expect([fixture.id, answer.body.length, answer.complete]).toEqual([fixture.id, bytes.length, true]);
  } else {
    // A client must not read the end of a cut recording as a normal end.
    expect([fixture.id, outcome]).toEqual([fixture.id, expect.stringMatching(/^upstream_(cut|error)$/)]);
  }
}

describe.each(FAMILIES)("recordings of %s", (family) => {
  test.skipIf(!hasFixtures)("arrive byte for byte, cut anywhere", async () => {
    const fixtures = listWhole(family);
    expect(fixtures.length).toBeGreaterThan(20);
    for (const [index, fixture] of fixtures.entries()) {
      const { target, body } = askForFixture(fixture);
      await expectSame(fixture, { target, body, fields: bearer(KEY_OF[family]) }, SEED + index);
    }
  });

  const relayed = family === "openai-responses" ? [] : listWhole(family);
  test.skipIf(!hasFixtures)("arrive so through the relay, where it serves them", async () => {
    for (const [index, fixture] of relayed.entries()) {
      const { target, body } = askForFixture(fixture);
      await expectSame(fixture, { target: `/relay${target}`, body, fields: bearer("relay") }, SEED - index);
    }
  });

  test.skipIf(!hasFixtures)("that are errors arrive so too, with their status", async () => {
    for (const fixture of listFixtures((each) => each.family === family && each.status >= 400)) {
      if (fixture.status !== 400 && fixture.status !== 404 && fixture.status !== 422) continue;
      world.upstream.next({ answer: replayFixture(fixture) });
      const { target, body } = askForFixture(fixture);
      const answer = await world.ask({ target, body, fields: bearer(KEY_OF[family]) });
      expect([fixture.id, answer.status, answer.text]).toEqual([
        fixture.id,
        fixture.status,
        readFixture(fixture).toString(),
      ]);
    }
  });
});

test.skipIf(!hasFixtures)("recorded responses are converted to chat, cut anywhere", async () => {
  const answers = listWhole("openai-responses").filter(({ url_path }) => url_path.endsWith("/responses"));
  for (const [index, fixture] of answers.entries()) {
    const cuts = makeCuts(readFixture(fixture).length, SEED + index);
    world.upstream.next({ answer: replayFixture(fixture, cuts) });
    const request = { model: "m", stream: fixture.stream, messages: [{ role: "user", content: "x" }] };
    const { answer, lines } = await world.trace({
      target: "/v1/chat/completions",
      body: request,
      fields: bearer("responses"),
    });
    const [line] = lines;
    expect([fixture.id, lines.length]).toEqual([fixture.id, 1]);
    if (line!["outcome"] !== "complete") {
      expect([fixture.id, answer.text.includes("[DONE]")]).toEqual([fixture.id, false]);
    } else if (fixture.stream) {
      expect([fixture.id, answer.text.endsWith("data: [DONE]\n\n")]).toEqual([fixture.id, true]);
    } else {
      expect([fixture.id, answer.status, JSON.parse(answer.text).object]).toEqual([
        fixture.id,
        200,
        "chat.completion",
      ]);
    }
  }
});
