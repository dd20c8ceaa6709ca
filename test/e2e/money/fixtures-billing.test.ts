// Each native recording is served by the simulated upstream in random pieces, and passed on by the gateway byte for byte. Its
// request has a ledger line with the usage of the manifest entry and with amounts that can be recomputed.

import { integer, sample, uniqueArray } from "fast-check";
import { describe, expect, test } from "bun:test";
import { existsSync, readFileSync } from "node:fs";
import type { Usage } from "../../../src/billing/usage.ts";
import { listProblems } from "../../billing/ledger/ledger-samples.ts";
import { type Billing, NORMAL, wantedOf } from "../../harness/billing-form.ts";
import {
  askForFixture,
  type Fixture,
  hasFixtures,
  listFixtures,
  readFixture,
  replayFixture,
} from "../../harness/fixtures.ts";
import { CREDENTIAL, keyOf, makeConfig } from "../../harness/gateway.ts";
import { type Line, openWorld, type World } from "../world.ts";

type Family = Fixture["family"];

const CHAT_KEY = "sk-test-chat";
const KEYS: Record<Family, string> = {
  anthropic: keyOf("messages"),
  "openai-responses": keyOf("responses"),
  "openai-chat": CHAT_KEY,
  gemini: keyOf("content"),
};

/** The hand-calculated amounts of some recordings. */
interface Vector {
  readonly fixture: string | null;
  readonly official_usd: string;
  readonly charge_at_multiplier: Readonly<Record<string, string>>;
}

const VECTORS = new URL("../../../../shared/reference/pricing-vectors.json", import.meta.url);
const vectors: readonly Vector[] = existsSync(VECTORS)
  ? JSON.parse(readFileSync(VECTORS, "utf8")).vectors
  : [];
const MULTIPLIER = "0.37";

function openBilling(): World {
  return openWorld((url) => {
    const config = makeConfig({ url });
    const groups = Object.entries(config.groups).map(([name, group]) => [
      name,
      { ...group, multiplier: MULTIPLIER },
    ]);
    const local = { platform: "responses", multiplier: MULTIPLIER, channels: ["chat"] };
    return {
      channels: { ...config.channels, chat: { platform: "chat", base_url: url, credential: CREDENTIAL } },
      groups: { ...Object.fromEntries(groups), local },
      keys: [...config.keys, { name: "chat", group: "local", secret: CHAT_KEY }],
    };
  });
}

const SEED = 20261120;

function makeCuts(size: number): number[] {
  const places = uniqueArray(integer({ min: 1, max: Math.max(1, size - 1) }), {
    minLength: 1,
    maxLength: 40,
  });
  return sample(places, { numRuns: 1, seed: SEED + size })[0] ?? [];
}

async function serve(world: World, fixture: Fixture & { family: Family }, asked = askForFixture(fixture)) {
  world.upstream.next({ answer: replayFixture(fixture, makeCuts(readFixture(fixture).length)) });
  const fields = { authorization: `Bearer ${KEYS[fixture.family]}` };
  const { answer, lines } = await world.trace({ ...asked, fields });
  expect(lines.map(({ multiplier }) => multiplier)).toEqual([MULTIPLIER]);
  return { answer, line: lines[0]! };
}

/** Returns the request's line. The client must have got the recording's bytes; after a cut recording, it may get an error, too. */
async function bill(world: World, fixture: Fixture & { family: Family }): Promise<Line> {
  const { answer, line } = await serve(world, fixture);
  const bytes = readFixture(fixture);
  const isCut = line["outcome"] === "upstream_cut";
  const got = isCut ? answer.body.subarray(0, bytes.length) : answer.body;
  expect([fixture.id, answer.status, got.equals(bytes)]).toEqual([fixture.id, fixture.status, true]);
  return line;
}

async function billChat(world: World, fixture: Fixture & { family: Family }): Promise<Line> {
  const { stream } = fixture;
  const body = { model: "demo-openai-responses", stream, messages: [{ role: "user", content: "x" }] };
  const { answer, line } = await serve(world, fixture, { target: "/v1/chat/completions", body });
  const isWhole = answer.text.endsWith("data: [DONE]\n\n") || answer.text.includes('"chat.completion"');
  expect([fixture.id, isWhole]).toEqual([fixture.id, line["outcome"] === "complete"]);
  return line;
}

interface Told {
  readonly upstream_model: string | null;
  readonly usage: Usage;
  readonly parts?: readonly { readonly model: string; readonly pass: string; readonly usage: Usage }[];
}

/** Reads the line's usage in the words of the manifest, without tier, region and speed; null: the line has no usage. */
function readLine(family: Family, line: Line): unknown {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- what it lacks fails the comparison
  const { upstream_model: model, usage, parts } = line as unknown as Told;
  if (Object.keys(usage).length === 0) return null;
  const all = parts ?? [{ model: null, pass: "message", usage }];
  return dropTariff(NORMAL[family]({ model, parts: all, tariff: {} }));
}

const SERVED = new Set(["service_tier", "inference_geo", "speed", "traffic_type"]);

function dropTariff(form: object): unknown {
  return Object.fromEntries(Object.entries(form).filter(([name]) => !SERVED.has(name)));
}

/** Whether this is a recording without usage, or with a usage of zeros although it has an answer. */
function isUnreported(billing: Billing): boolean {
  const counts = (billing?.lines ?? []).flatMap((line: object) => Object.values(line));
  return counts.every((count: unknown) => typeof count !== "number" || count === 0);
}

/** Recordings billed differently from the manifest or from similar ones; each has its reason below. */
const APART = /\/spliced--truncated-0$|file-uri-image-true$|programmatic-tool-calling-1-1$/;

const ofFamily = (family: Family, holds: (fixture: Fixture) => boolean) =>
  listFixtures((fixture) => fixture.native && fixture.family === family && holds(fixture)).map((fixture) => ({
    ...fixture,
    family,
  }));

const isAnswer = ({ id, status }: Fixture): boolean => status === 200 && !APART.test(id);

const findFaults = ({ gateway }: World): string[] => listProblems(gateway.folder.join("ledger.jsonl"), true);

/** A line's fields about money. */
const MONEY = "upstream_model basis usage parts raw_usage prices tier official_usd charge_usd".split(" ");
const FAMILIES: readonly Family[] = ["anthropic", "openai-responses", "openai-chat", "gemini"];

describe.skipIf(!hasFixtures)("recordings through the gateway are billed right", () => {
  test.each([...FAMILIES])(
    "P73, P131: each recorded answer of %s arrives byte for byte, and the usage and amounts of its line are right",
    async (family) => {
      const world = openBilling();
      const answers = ofFamily(family, isAnswer);
      expect(answers.length).toBeGreaterThan(70);
      for (const fixture of answers) {
        const { billing } = fixture.expect;
        const line = await bill(world, fixture);
        const want = isUnreported(billing) ? null : dropTariff(wantedOf(fixture));
        // A server of Chat Completions may answer completely without reporting usage. Then the counts are estimated.
        if (want === null && family === "openai-chat" && line["outcome"] === "complete") {
          expect({ id: fixture.id, ...line }).toMatchObject({ estimated: ["input", "output"] });
          expect(["unpriced", "partial"]).toContain(String(line["basis"]));
          continue;
        }
        expect({ id: fixture.id, usage: readLine(family, line) }).toEqual({ id: fixture.id, usage: want });
        // Without reported usage, the amounts are unknown, not 0. Only a failed stream is free.
        if (want === null) {
          const free = { outcome: "upstream_error", basis: "exact", official_usd: "0" };
          const unknown = { basis: "unknown", official_usd: null, charge_usd: null };
          expect({ id: fixture.id, ...line }).toMatchObject(
            line["outcome"] === "upstream_error" ? free : unknown,
          );
        } else expect(["exact", "unpriced", "partial"]).toContain(String(line["basis"]));
        const vector = vectors.find((each) => each.fixture === fixture.id);
        if (vector === undefined) continue;
        expect([line["official_usd"], line["charge_usd"]]).toEqual([
          vector.official_usd,
          vector.charge_at_multiplier[MULTIPLIER],
        ]);
      }
      expect(findFaults(world)).toEqual([]);
      await world.stop();
    },
  );

  test("responses cost the same through /v1/chat/completions and /v1/responses", async () => {
    const world = openBilling();
    for (const fixture of ofFamily("openai-responses", isAnswer)) {
      const [own, converted] = [await bill(world, fixture), await billChat(world, fixture)];
      const shown = (line: Line) => [fixture.id, ...MONEY.map((name) => line[name])];
      expect(shown(converted)).toEqual(shown(own));
    }
    expect(findFaults(world)).toEqual([]);
    await world.stop();
  });

  test("a client that did not ask for a stream's usage pays the same, and does not get the chunk with the usage", async () => {
    const world = openBilling();
    let removed = 0;
    for (const fixture of ofFamily("openai-chat", (each) => isAnswer(each) && each.stream)) {
      const asked = askForFixture(fixture);
      const quiet = { ...asked, body: { ...asked.body, stream_options: undefined } };
      const [own, { answer, line }] = [await bill(world, fixture), await serve(world, fixture, quiet)];
      const shown = (each: Line) => [fixture.id, ...MONEY.map((name) => each[name])];
      // Usage that is not reported is estimated from the request's size, which differs between the two.
      if (own["estimated"] === undefined) expect(shown(line)).toEqual(shown(own));
      const bytes = readFixture(fixture).toString("latin1");
      const kept = bytes.replaceAll(
        /data: \{(?:(?!\n)[^])*"choices": ?\[\](?:(?!\n)[^])*"usage": ?\{[^\n]*\n\r?\n/g,
        "",
      );
      expect([fixture.id, answer.body.toString("latin1")]).toEqual([fixture.id, kept]);
      if (kept !== bytes) removed += 1;
    }
    expect(removed).toBeGreaterThan(20);
    expect(findFaults(world)).toEqual([]);
    await world.stop();
  });

  test.each([...FAMILIES])("%s: an error that was recorded costs nothing", async (family) => {
    for (const fixture of ofFamily(family, ({ status }) => status >= 400)) {
      const world = openBilling();
      // Errors that are about the channel, such as a refused credential, are replaced by the gateway's own.
      const isPassed = [400, 404, 422].includes(fixture.status);
      const line = isPassed ? await bill(world, fixture) : (await serve(world, fixture)).line;
      expect({ id: fixture.id, ...line }).toMatchObject({
        outcome: "upstream_error",
        basis: "exact",
        usage: {},
        official_usd: "0",
        charge_usd: "0",
        attempts: [{ status: fixture.status }],
      });
      expect(findFaults(world)).toEqual([]);
      await world.stop();
    }
  });

  test("recordings that are billed differently from the manifest are billed as this test lists them", async () => {
    const world = openBilling();
    const billed = [];
    for (const family of FAMILIES) {
      for (const fixture of ofFamily(family, ({ id }) => APART.test(id))) {
        const { outcome, basis, usage, estimated } = await bill(world, fixture);
        billed.push({ id: fixture.id, outcome, basis, usage, estimated });
      }
    }
    expect(billed).toEqual([
      // The manifest has the reported usage; the output seen beyond it is estimated, and marked as estimated.
      {
        id: "anthropic/spliced--truncated-0",
        outcome: "upstream_cut",
        basis: "partial",
        usage: { input: 2714, output: 16 },
        estimated: ["output"],
      },
      // Zero is right: the answer contains only what the client sent.
      {
        id: "anthropic/vercel-ai--anthropic-programmatic-tool-calling-1-1",
        outcome: "complete",
        basis: "exact",
        usage: { input: 0, output: 0 },
        estimated: undefined,
      },
      {
        id: "openai-responses/spliced--truncated-0",
        outcome: "upstream_cut",
        basis: "partial",
        usage: { input: 15, output: 3 },
        estimated: ["input", "output"],
      },
      {
        id: "openai-chat/spliced--truncated-0",
        outcome: "upstream_cut",
        basis: "partial",
        usage: { input: 32, output: 3 },
        estimated: ["input", "output"],
      },
      // This answer reports candidates and thoughts but no prompt: its usage is unknown.
      {
        id: "gemini/openinference--test-instrumentation-test-generate-content-with-file-uri-image-true",
        outcome: "complete",
        basis: "unknown",
        usage: {},
        estimated: undefined,
      },
      {
        id: "gemini/spliced--truncated-0",
        outcome: "upstream_cut",
        basis: "partial",
        usage: { input: 46, output: 14 },
        estimated: ["output"],
      },
    ]);
    await world.stop();
  });
});
