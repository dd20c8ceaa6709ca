// Tests that a model has its price under the names that relays, clouds and tools give it.

import { collectCases, pay, type Term, testCases } from "./oracle.ts";
import { writeContent, writeMessage, writeResponse } from "./wire.ts";

const { cases, add } = collectCases();
const messages = add("messages");
const responses = add("responses");
const content = add("content");

const TERMS: Term[] = pay("1234 × 1, 567 × 5");
const USAGE = '{"input_tokens":1234,"output_tokens":567}';
for (const n of [
  "us.anthropic.claude-haiku-4-5-20251001-v1:0",
  "global.anthropic.claude-haiku-4-5-20251001-v1:0",
  "anthropic/claude-haiku-4-5",
  "claude-haiku-4-5@20251001",
  "claude-haiku-4-5[1m]",
  "claude-haiku-4-5-latest",
  "anthropic/claude-haiku-4.5:beta",
  "claude-haiku-4-5-thinking",
])
  messages(`name ${n}`, n, writeMessage(n, USAGE), { terms: TERMS });
for (const n of ["claude-haiku-4-5x", "claude-haiku-4", "xclaude-haiku-4-5"])
  messages(`no price ${n}`, n, writeMessage(n, USAGE), { basis: "unpriced" });
messages("priced_as", "claude-haiku-4-5", writeMessage("relay-internal-77", USAGE), {
  terms: TERMS,
  pricedAs: "claude-haiku-4-5",
});
for (const n of [
  "models/gemini-2.5-flash",
  "google/gemini-2.5-flash",
  "publishers/google/models/gemini-2.5-flash",
])
  content(
    `name ${n}`,
    "gemini-2.5-flash",
    writeContent(
      n,
      '{"promptTokenCount":1000,"candidatesTokenCount":30,"thoughtsTokenCount":7,"totalTokenCount":1037}',
    ),
    { terms: pay("1000 × 0.3, 37 × 2.5") },
  );
for (const n of ["openai/gpt-5.4", "gpt-5.4-2026-03-05"])
  responses(
    `name ${n}`,
    "gpt-5.4",
    writeResponse(
      n,
      '{"input_tokens":1000,"input_tokens_details":{"cached_tokens":400},"output_tokens":50,"output_tokens_details":{"reasoning_tokens":20},"total_tokens":1050}',
    ),
    { terms: pay("600 × 2.5, 400 × 0.25, 50 × 15") },
  );

testCases(cases);
