import { afterAll, beforeAll, expect, test } from "bun:test";
import { makeGate } from "../../src/demo/script.ts";
import { startDemoUpstream, type DemoUpstream } from "../../src/demo/upstream.ts";
import { askForFixture, hasFixtures, listFixtures, readFixture, replayFixture } from "../harness/fixtures.ts";
import { openRaw, parseAnswer, rawRequest, writeRequest } from "../harness/raw.ts";

let upstream: DemoUpstream;
beforeAll(() => {
  upstream = startDemoUpstream();
});
afterAll(() => upstream.stop());

test.skipIf(!hasFixtures)(
  "every recording is served byte for byte, with its status, however it is cut",
  async () => {
    const fixtures = listFixtures();
    expect(fixtures.length).toBeGreaterThan(500);
    for (const fixture of fixtures) {
      const bytes = readFixture(fixture);
      const cuts = fixture.stream ? [1, bytes.length >> 2, bytes.length - 1] : [];
      upstream.next({ answer: replayFixture(fixture, cuts) });
      const answer = await rawRequest(upstream.port, askForFixture(fixture));
      expect([fixture.id, answer.status, answer.complete, answer.body.equals(bytes)]).toEqual([
        fixture.id,
        fixture.status,
        true,
        true,
      ]);
    }
  },
);

test.skipIf(!hasFixtures)("a gate holds a recording at a cut", async () => {
  const [fixture] = listFixtures(({ family, stream }) => family === "gemini" && stream);
  const gate = makeGate();
  upstream.next({ answer: replayFixture(fixture!, [100]), gates: { 1: gate } });
  const connection = await openRaw(upstream.port);
  connection.send(writeRequest(askForFixture(fixture!)));
  await gate.reached;
  await connection.until((all) => (parseAnswer(all)?.body.length ?? 0) === 100);
  gate.open();
  await connection.until((all) => parseAnswer(all)?.complete === true);
  expect(parseAnswer(connection.bytes())?.body.equals(readFixture(fixture!))).toBe(true);
  connection.close();
});
