// Rules for every direction and every session. fast-check makes the sessions, and a failure names its seed.
// R1: what a dialect can hold arrives. R2: a request keeps the bytes and the thoughts of the request before.
// R3: it does not matter where a stream is cut. R4: a broken answer never looks complete. R5: the client gets
// the meter's usage. R6: hostile input is converted or refused. R7: a strict provider accepts every request.

import { describe, expect, spyOn, test } from "bun:test";
import * as fc from "fast-check";
import {
  countTokens,
  OUTPUT_KINDS,
  PROMPT_KINDS,
  READ_KINDS,
  sumUsage,
  type Usage,
} from "../../src/billing/usage.ts";
import type { DialectName } from "../../src/dialects/dialect.ts";
import { DIALECTS } from "../../src/dialects/endpoints.ts";
import { GatewayError } from "../../src/lib/errors.ts";
import { type Any, convert, DIRECTIONS, readDirection, sse, stream, whole } from "./calls.ts";
import { flatten, judge } from "./judge.ts";
import { formAnswer, joinAnswer } from "./provider.ts";
import { formRequest, formUser, keepAnswer, type ModelTurn, TOOLS, type UserTurn } from "./session.ts";

const CASES = DIRECTIONS.map((direction) => [direction, ...readDirection(direction)] as const);

const text = fc
  .string({ unit: "grapheme", minLength: 1, maxLength: 30 })
  .filter((each) => each.trim() !== "");
const args = fc.dictionary(
  fc.constantFrom("path", "command", "ö"),
  fc.oneof(text, fc.integer(), fc.boolean()),
);
const modelTurn = fc
  .record({
    thought: fc.option(text),
    text: fc.option(text),
    calls: fc.array(fc.record({ name: fc.constantFrom(...TOOLS), args }), { maxLength: 4 }),
  })
  .filter(({ text, calls }) => text !== null || calls.length > 0);
const userTurn = fc.record({
  results: fc.array(text, { maxLength: 4 }),
  text: fc.option(text),
  image: fc.boolean(),
});
const session = fc.array(fc.tuple(userTurn, modelTurn), { minLength: 1, maxLength: 4 });
const counts = fc
  .record({
    read: fc.nat(999),
    fresh: fc.nat(999),
    reasoning: fc.nat(99),
    spoken: fc.integer({ min: 1, max: 999 }),
  })
  .map(({ read, fresh, reasoning, spoken }) => ({
    prompt: read + fresh,
    read,
    output: reasoning + spoken,
    reasoning,
  }));

type Session = readonly (readonly [
  UserTurn,
  Omit<ModelTurn, "calls"> & { calls: readonly Omit<Any, "id">[] },
])[];

/** Gives each call an id, and the first turn a text. */
function name(turns: Session): [UserTurn, ModelTurn][] {
  return turns.map(([user, model], at) => [
    at === 0 ? { ...user, text: user.text ?? "Hello" } : user,
    { ...model, calls: model.calls.map((call, index): Any => ({ ...call, id: `call_${at}_${index}` })) },
  ]);
}

const USAGE = { prompt: 10, read: 4, output: 6, reasoning: 0 };

interface Play {
  readonly bodies: Any[];
  readonly texts: string[];
  readonly script: Any[];
}

/** Plays a session through a direction, as client and upstream would: each answer goes into the client's own history. */
function play(
  client: DialectName,
  upstream: DialectName,
  turns: [UserTurn, ModelTurn][],
  secrets: string[] = [],
): Play {
  const direction = `${client}>${upstream}`;
  const history: Any[] = [];
  const played: Play = { bodies: [], texts: [], script: [] };
  let calls: ModelTurn["calls"] = [];
  for (const [at, [user, model]] of turns.entries()) {
    const said = user.text ?? (calls.length === 0 ? "next" : null);
    history.push(...formUser(client, { ...user, text: said }, calls));
    played.script.push(...calls.map(({ id }, index) => ["result", id, user.results[index] ?? "ok"]));
    if (said !== null) played.script.push(["user", said]);
    if (user.image) played.script.push(["user", "image"]);
    const converted = convert(direction, formRequest(client, history, true), { secret: secrets[at] ?? "s" });
    played.bodies.push(converted.body);
    played.texts.push(converted.text);
    const sent = { ...model, calls: model.calls.map((call) => ({ ...call, name: nameAt(call.name) })) };
    const answer = stream(converted, [sse(formAnswer(upstream, sent, USAGE))]);
    expect(answer.phase).toBe("done");
    history.push(...keepAnswer(client, answer.events));
    played.script.push(...(model.text === null ? [] : [["assistant", model.text]]));
    played.script.push(...model.calls.map(({ id, name, args }) => ["call", id, nameAt(name), args]));
    calls = model.calls;

    function nameAt(name: string): string {
      const tools = JSON.stringify(converted.body.tools);
      return tools.includes(`"${name}"`) ? name : (/"(mcp__[\w]+)"/.exec(tools)?.[1] ?? name);
    }
  }
  return played;
}

/** The members of an event that may hold a piece of text. */
const PIECES = new Set(
  "text thinking partial_json delta content refusal reasoning_content arguments input".split(" "),
);

/** Joins the texts of successive events that differ only in their piece of text. */
function joinPieces(events: readonly Any[]): [frame: string, text: string][] {
  const joined: [string, string][] = [];
  for (const event of events) {
    let text = "";
    const frame = JSON.stringify(event, (name, value) => {
      if (name === "sequence_number") return undefined;
      if (!PIECES.has(name) || typeof value !== "string") return value;
      text += value;
      return "";
    });
    const last = joined.at(-1);
    // Only the first piece of a text may have a signature: that of the thoughts before the text.
    if (last?.[0].replace(/,"thoughtSignature":"[^"]*"/, "") === frame) last[1] += text;
    else joined.push([frame, text]);
  }
  return joined;
}

const MARK = /,"(?:cache_control|prompt_cache_breakpoint)":\{[^{}]*\}/g;

/** Returns the text without what may differ between two requests of a session: the cache's marks, and the
 *  closing brackets of the JSON. */
function openEnd(text: string): string {
  return text.replaceAll(MARK, "").replace(/[\]}]+$/, "");
}

const odd = fc.constantFrom("ä", '"', "\\", "\ud83d", "\ude00", "\n");
const piece = fc.record({
  said: fc.oneof(odd, fc.string({ unit: "binary", maxLength: 9 })),
  place: fc.nat(400),
  isCut: fc.boolean(),
  obfuscation: fc.string({ unit: "binary-ascii", maxLength: 4 }),
});

/** Five sessions are enough for each test, because each run of the tests makes other sessions. */
const RUNS = { numRuns: 5 };

describe.each(CASES)("%s", (direction, client, upstream) => {
  test(`R1, ${direction}: the upstream gets the session's messages, calls and results in their order`, () => {
    fc.assert(
      fc.property(session, (turns) => {
        const { bodies, script } = play(client, upstream, name(turns));
        const seen = flatten(upstream, bodies.at(-1)).filter(([kind]) => kind !== "thought");
        const last = turns.at(-1);
        const answered = script.slice(0, script.length - (last === undefined ? 0 : countSaid(last[1])));
        expect(seen).toEqual(answered);
      }),
      RUNS,
    );
  });

  test(`R2 and R7, ${direction}: a strict upstream accepts every request, and each begins with the bytes of the one before`, () => {
    fc.assert(
      fc.property(session, (turns) => {
        const { bodies, texts } = play(client, upstream, name(turns));
        for (const body of bodies) expect(judge(upstream, body)).toEqual([]);
        for (const [at, text] of texts.entries())
          if (at > 0) expect(openEnd(text).startsWith(openEnd(texts[at - 1] ?? ""))).toBe(true);
      }),
      RUNS,
    );
  });

  test(`R2, ${direction}: thoughts go back to their upstream unchanged, and to no other channel`, () => {
    fc.assert(
      fc.property(session, (turns) => {
        const named = name(turns).map(([user, model]): [UserTurn, ModelTurn] => [
          user,
          { ...model, thought: "hm" },
        ]);
        named.push([
          { results: [], text: "more", image: false },
          { thought: null, text: "x", calls: [] },
        ]);
        const own = JSON.stringify(play(client, upstream, named).bodies.at(-1));
        expect(own.split(THOUGHTS[upstream]).length - 1).toBe(turns.length);
        const other = play(client, upstream, named, [...named.slice(1).map(() => "s"), "other"]);
        expect(JSON.stringify(other.bodies.at(-1))).not.toContain(THOUGHTS[upstream]);
        expect(JSON.stringify(other.bodies.at(-1))).not.toContain("gw1.");
        expect(judge(upstream, other.bodies.at(-1))).toEqual([]);
      }),
      RUNS,
    );
  });

  test(`R3 and R5, ${direction}: a stream has the same content however its bytes are divided, and an unstreamed answer has the same content and usage`, () => {
    fc.assert(
      fc.property(modelTurn, counts, fc.array(fc.nat(5000), { maxLength: 8 }), (turn, usage, places) => {
        const named = {
          ...turn,
          calls: turn.calls.map((call, at) => ({ ...call, name: "Read", id: `c${at}` })),
        };
        const converted = convert(direction, formRequest(client, formUser(client, ASK, []), true));
        const bytes = Buffer.from(sse(formAnswer(upstream, named, usage, inPieces)));
        const cuts = [...new Set(places.map((at) => at % bytes.length))].sort((a, b) => a - b);
        const pieces = [0, ...cuts].map((from, at) => bytes.subarray(from, cuts[at] ?? bytes.length));
        const answer = stream(converted, pieces);
        expect(joinPieces(answer.events)).toEqual(joinPieces(stream(converted, [bytes]).events));
        const joined = whole(converted, joinAnswer(upstream, formAnswer(upstream, named, usage)));
        expect(joined.status).toBe(200);
        const kept = keepAnswer(client, [joined.body]);
        if (client === "content") expect(spoken(kept)).toEqual(spoken(keepAnswer(client, answer.events)));
        else expect(kept).toEqual(keepAnswer(client, answer.events));
        const { reasoning: _, ...known } = usage;
        const told = pickTotals(answer.usage);
        expect(told).toMatchObject(known);
        expect(readUsage(client, answer.text, "text/event-stream")).toEqual(told);
        expect(readUsage(client, JSON.stringify(joined.body), "application/json")).toEqual(told);
      }),
      RUNS,
    );
  });

  test(`R3, ${direction}: an event that differs from the one before only in its text is converted without parsing, with the same result`, () => {
    const converted = convert(direction, formRequest(client, formUser(client, ASK, []), true));
    const say = (texts: string[], thought: string | null = null): Any[] =>
      formAnswer(upstream, { thought, text: texts.join(""), calls: [] }, USAGE, () => texts);
    fc.assert(
      fc.property(fc.array(piece, { minLength: 1, maxLength: 30 }), (pieces) => {
        const texts = pieces.map(({ said }) => said);
        const [alike, others]: [Buffer[], Buffer[]] = [[], []];
        for (const [at, event] of say(texts, texts.join("")).entries()) {
          const { place, isCut, obfuscation }: Any = pieces[at % pieces.length];
          const text = sse([event === "[DONE]" ? event : { ...event, sequence_number: at, obfuscation }]);
          const bytes = Buffer.from(text);
          // In `others`, each event has a comment of its own, so that none is like the one before.
          for (const [list, comment] of [
            [alike, ""],
            [others, `: ${at}\n`],
          ] as const) {
            const start = [...list.splice(-1), Buffer.from(comment), bytes.subarray(0, place)];
            const rest = bytes.subarray(place);
            list.push(...(isCut ? [Buffer.concat(start), rest] : [Buffer.concat([...start, rest])]));
          }
        }
        expect(stream(converted, alike)).toEqual(stream(converted, others));
      }),
      { numRuns: 30 },
    );
    const parse = spyOn(JSON, "parse");
    const events = say(Array.from({ length: 200 }, () => "x"));
    stream(converted, [events.map((event, at) => (at < 40 ? `: ${at}\n` : "") + sse([event])).join("")]);
    expect(parse.mock.calls.length).toBeLessThan(120);
    parse.mockRestore();
  });

  test(`R4, ${direction}: a stream that is cut anywhere ends as a failure, and never as an answer`, () => {
    const turn = {
      thought: "hm",
      text: "Hello, ä",
      calls: [{ id: "c1", name: "Read", args: { path: "x" } }],
    };
    const converted = convert(direction, formRequest(client, formUser(client, ASK, []), true));
    const bytes = Buffer.from(sse(formAnswer(upstream, turn, USAGE)));
    // At every second place the connection breaks, and at the others it ends normally.
    for (let at = 0; at < bytes.length; at += 5) {
      const broken = at % 2 === 0;
      const { phase, text, refusal } = stream(converted, [bytes.subarray(0, at)], broken);
      const meter = DIALECTS[upstream].openMeter("text/event-stream");
      meter.see(bytes.subarray(0, at));
      // After a finish reason, a clean end completes the answer, too: some chat servers send nothing more.
      const hasReason = !broken && /"finish_reason":"\w+"}]}/.test(bytes.subarray(0, at).toString());
      if (meter.read().end === "complete" || hasReason) continue;
      expect([at, phase === "broken" || phase === "refused"]).toEqual([at, true]);
      expect(ENDS[client].test(text)).toBe(false);
      if (phase === "refused") expect(refusal?.status).toBe(502);
      else expect(text).toContain('"error"');
    }
  });

  test(`R6, ${direction}: whatever a client sends is converted or refused, and nothing crashes`, () => {
    fc.assert(
      fc.property(fc.json({ maxDepth: 4 }), fc.nat(9), (json, at) => {
        const body = formRequest(client, formUser(client, ASK, []), false);
        const place = Object.keys(body)[at % Object.keys(body).length] ?? "";
        try {
          convert(direction, { ...body, [place]: JSON.parse(json) });
        } catch (error) {
          expect(error).toBeInstanceOf(GatewayError);
          expect(error).toMatchObject({ status: 400 });
        }
      }),
      { numRuns: 15 },
    );
  });

  test(`R6, ${direction}: repeated ids, results without a call and changed envelopes are converted in linear time`, () => {
    const turn = { thought: "hm", text: "Hello", calls: [{ id: "c1", name: "Read", args: {} }] };
    const ask = formUser(client, ASK, []);
    const first = convert(direction, formRequest(client, ask, true));
    const kept = keepAnswer(client, stream(first, [sse(formAnswer(upstream, turn, USAGE))]).events);
    const changed = JSON.parse(JSON.stringify(kept).replaceAll(/gw1\.(.{9})./g, "gw1.$1_"));
    const results = formUser(client, { results: ["ok"], text: "more", image: false }, turn.calls);
    const measure = (turns: number): number => {
      const again = Array.from({ length: turns }, () => [...changed, ...results, ...results]).flat();
      const body = formRequest(client, [...ask, ...again], true);
      const before = process.cpuUsage();
      const converted = convert(direction, body);
      const { user, system } = process.cpuUsage(before);
      expect(judge(upstream, converted.body)).toEqual([]);
      expect(converted.text).not.toContain("gw1.");
      return user + system;
    };
    measure(50);
    // If the work is linear, 800 turns take as long as eight times 100. On a busy machine, a single try may take longer.
    const compare = (): number => {
      let eightTimes = 0;
      for (let at = 0; at < 8; at += 1) eightTimes += measure(100);
      return measure(800) / eightTimes;
    };
    expect(compare() < 4 || compare() < 4 || compare() < 4).toBe(true);
  });

  test(`R6, ${direction}: whatever an upstream sends becomes an answer or a failure, and nothing crashes`, () => {
    const converted = convert(direction, formRequest(client, formUser(client, ASK, []), true));
    const turn = { thought: "hm", text: "Hello", calls: [{ id: "c1", name: "Read", args: {} }] };
    const good = formAnswer(upstream, turn, USAGE);
    fc.assert(
      fc.property(
        fc.array(
          fc.oneof(
            fc.constantFrom(...good),
            fc.json().map((each) => JSON.parse(each)),
          ),
          { maxLength: 12 },
        ),
        (events) => {
          const { phase } = stream(converted, [
            sse(events.map((each) => (each === "[DONE]" ? each : (each ?? {})))),
          ]);
          expect(["done", "broken", "refused"]).toContain(phase);
          for (const event of events) whole(converted, event ?? {});
        },
      ),
      { numRuns: 10 },
    );
  });
});

const ASK: UserTurn = { results: [], text: "Hello", image: false };

/** By dialect: the text in a request that shows that the request has the sealed thought. */
const THOUGHTS: Readonly<Record<DialectName, string>> = {
  messages: '"signature":"sig(hm)"',
  responses: '"encrypted_content":"blob(hm)"',
  chat: '"reasoning_content":"hm"',
  content: '"thoughtSignature":"sig(hm)"',
};

/** A normal end in the client's dialect. */
const ENDS: Readonly<Record<DialectName, RegExp>> = {
  messages: /message_stop|"stop_reason":"/,
  responses: /response\.(?:completed|incomplete)"/,
  chat: /\[DONE\]|"finish_reason":"/,
  content: /"finishReason"/,
};

function countSaid({ text, calls }: { text: string | null; calls: readonly unknown[] }): number {
  return (text === null ? 0 : 1) + calls.length;
}

function inPieces(text: string): string[] {
  const middle = Math.floor(text.length / 2);
  return [text.slice(0, middle), text.slice(middle)].filter((each) => each !== "");
}

/** Leaves out empty texts and signatures: in a stream, signatures are on other parts than in a whole answer. */
function spoken(kept: Any[]): unknown {
  return kept.flatMap(({ parts }) =>
    parts.flatMap((part: Any) => (part.text === "" ? [] : [{ ...part, thoughtSignature: undefined }])),
  );
}

function pickTotals(usage: Usage): Any {
  return {
    prompt: countTokens(usage, PROMPT_KINDS),
    read: countTokens(usage, READ_KINDS),
    output: countTokens(usage, OUTPUT_KINDS),
    reasoning: usage.reasoning ?? 0,
  };
}

function readUsage(client: DialectName, text: string, type: string): Any {
  const meter = DIALECTS[client].openMeter(type);
  meter.see(Buffer.from(text));
  const reading = meter.read();
  expect(reading.faults).toBeUndefined();
  expect(reading.end).toBe("complete");
  return pickTotals(sumUsage(reading.parts));
}
