// What the gateway knows of earlier requests does not change how a prompt is read, and neither do later requests.

import { expect, test } from "bun:test";
import * as fc from "fast-check";
import { DIALECTS } from "../../../src/dialects/endpoints.ts";
import { readPrompt as readStep } from "../../../src/dialects/prompt/prompt.ts";
import { KnownParts } from "../../../src/gateway/intake/known-parts.ts";
import { ownParts, readSteps, scanBody } from "./prompt.ts";

const FIXED = { type: "text", text: "fixed", cache_control: { type: "ephemeral" } };
const LONG = "x".repeat(70_000);
const block = fc.constantFrom<object>(
  ...["a", "b", LONG].map((text) => ({ type: "text", text })),
  ...["1", "2"].map((id) => ({ type: "tool_use", id, name: `t${id}`, input: {} })),
  ...["1", "2"].map((id) => ({ type: "tool_result", tool_use_id: id, content: "r" })),
  { type: "thinking", thinking: "t" },
);
const content = fc.oneof(fc.constantFrom<unknown>("a", [], "b", LONG), fc.array(block, { maxLength: 3 }));
const role = fc.constantFrom("user", "user", "assistant", "system");
type Turn = [talk: number, kept: number, more: object[], system: string, tools: number, late: boolean];
const turn: fc.Arbitrary<Turn> = fc.tuple(
  fc.nat(1),
  fc.oneof(fc.constant(Infinity), fc.nat(12)),
  fc.array(fc.record({ role, content }), { maxLength: 3 }),
  fc.constantFrom("s", "s", "x-anthropic-billing-header: 1", "s 2"),
  fc.constantFrom(2, 2, 3),
  fc.boolean(),
);
const A = { role: "user", content: "a" };
const NONE = { role: "user", content: [] };
/** Both prompts end with the same message: it is the second of one prompt and the third of the other. */
const MOVED: Turn[] = [
  [0, 0, [A, A], "s", 2, false],
  [0, 1, [NONE, A], "s", 2, false],
];

test.each(["messages", "chat", "responses"] as const)(
  "a prompt of %s is read the same way, whatever earlier and later requests the gateway knows",
  (dialect) => {
    const layout = DIALECTS[dialect].promptLayout;
    const run = (turns: Turn[]): void => {
      const known = new KnownParts();
      const talks: object[][] = [[], []];
      const late: (() => void)[] = [];
      for (const [conversation, kept, more, system, tools, isLate] of turns) {
        const talk = [...talks[conversation]!.slice(0, kept), ...more];
        talks[conversation] = talk;
        const body = {
          [dialect === "responses" ? "input" : "messages"]: talk,
          system: [{ type: "text", text: system }, FIXED],
          tools: Array.from({ length: tools }, (_, at) => ({ name: `t${at}` })),
        };
        // The mark is in the last block, as agents have it.
        const text = JSON.stringify(body).replace(/\}\](\}\],"system")/, ',"cache_control":{}}]$1');
        const bytes = Buffer.from(text);
        const scanned = scanBody(bytes, layout, known.find("s"))!;
        known.keep("s", scanned.scan.lists);
        readStep(scanned, layout);
        const found = isLate ? undefined : readSteps(scanned, layout);
        late.push(() => {
          const { prompt, pieces } = (found === undefined ? readSteps(scanned, layout) : found) ?? {};
          const fresh = readSteps(scanBody(bytes, layout)!, layout);
          expect([prompt && ownParts(prompt), pieces]).toEqual([fresh?.prompt, fresh?.pieces]);
        });
      }
      for (const check of late) check();
    };
    fc.assert(fc.property(fc.array(turn, { maxLength: 12 }), run), { numRuns: 300, examples: [[MOVED]] });
  },
);
