// What is known of earlier requests changes no prompt, and no later request changes an earlier prompt.

import { expect, test } from "bun:test";
import * as fc from "fast-check";
import { DIALECTS } from "../../../src/dialects/endpoints.ts";
import { readPrompt as readStep } from "../../../src/dialects/prompt/prompt.ts";
import { KnownParts } from "../../../src/gateway/intake/known-parts.ts";
import { ownParts, readSteps, scanBody } from "./prompt.ts";

const MARK = { cache_control: { type: "ephemeral" } };
const text = fc.constantFrom("a", "b", "x".repeat(70_000));
const block = fc.oneof(
  text.map((each) => ({ type: "text", text: each })),
  fc.constantFrom("1", "2").map((id) => ({ type: "tool_use", id, name: `t${id}`, input: {} })),
  fc.constantFrom("1", "2").map((id) => ({ type: "tool_result", tool_use_id: id, content: "r" })),
  fc.constant({ type: "thinking", thinking: "t" }),
);
const message: fc.Arbitrary<object> = fc.record({
  role: fc.constantFrom("user", "user", "assistant", "system"),
  content: fc.oneof(fc.constant("a"), fc.constant([]), text, fc.array<object>(block, { maxLength: 3 })),
});
const turn = fc.record({
  conversation: fc.nat(1),
  keep: fc.oneof(fc.constant(Infinity), fc.nat(12)),
  more: fc.array(message, { maxLength: 3 }),
  system: fc.constantFrom<string>("s", "s", "x-anthropic-billing-header: 1", "s 2"),
  tools: fc.constantFrom<number>(2, 2, 3),
  isRead: fc.boolean(),
});
const same = { conversation: 0, system: "s", tools: 2, isRead: true };
const [a, none]: object[] = ["a", []].map((content) => ({ role: "user", content }));
/** The last message is the same, but has another number. */
const MOVED = [
  { ...same, keep: 0, more: [a!, a!] },
  { ...same, keep: 1, more: [none!, a!] },
];

test.each(["messages", "chat", "responses"] as const)(
  "prompts of %s are the same with and without earlier requests, whenever they are read",
  (dialect) => {
    const layout = DIALECTS[dialect].promptLayout;
    const run = (turns: typeof MOVED): void => {
      const known = new KnownParts();
      const talks: object[][] = [[], []];
      const late: (() => void)[] = [];
      for (const { conversation, keep, more, system, tools, isRead } of turns) {
        const talk = [...talks[conversation]!.slice(0, keep), ...more];
        talks[conversation] = talk;
        const body = {
          [dialect === "responses" ? "input" : "messages"]: talk,
          system: [
            { type: "text", text: system },
            { type: "text", text: "fixed", ...MARK },
          ],
          tools: Array.from({ length: tools }, (_, at) => ({ name: `t${at}` })),
        };
        // The mark is in the last block, as agents have it.
        const bytes = Buffer.from(
          JSON.stringify(body).replace(/\}\](\}\],"system")/, ',"cache_control":{}}]$1'),
        );
        const scanned = scanBody(bytes, layout, known.find("s"))!;
        known.keep("s", scanned.scan.lists);
        readStep(scanned, layout);
        const check = (found = readSteps(scanned, layout)): void => {
          const fresh = readSteps(scanBody(bytes, layout)!, layout);
          expect(found && ownParts(found.prompt)).toEqual(fresh?.prompt ?? null);
          expect(found?.pieces).toEqual(fresh?.pieces);
        };
        const found = isRead ? readSteps(scanned, layout) : undefined;
        late.push(() => check(found));
      }
      for (const check of late) check();
    };
    fc.assert(fc.property(fc.array(turn, { maxLength: 12 }), run), { numRuns: 300, examples: [[MOVED]] });
  },
);
