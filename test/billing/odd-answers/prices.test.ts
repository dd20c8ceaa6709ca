// Tests what an answer costs if its tier, length, parts, lifetimes or calls have a price of their own.

import { collectCases, pay, testCases } from "./oracle.ts";
import { responsesUsage, writeContent, writeMessage, writeResponse } from "./wire.ts";

const { cases, add } = collectCases();
const messages = add("messages");
const responses = add("responses");
const content = add("content");
messages(
  "fable 5.2, all kinds",
  "claude-fable-5-2",
  writeMessage(
    "claude-fable-5-2",
    '{"input_tokens":11,"cache_read_input_tokens":100003,"cache_creation_input_tokens":700,"cache_creation":{"ephemeral_5m_input_tokens":300,"ephemeral_1h_input_tokens":400},"output_tokens":13}',
  ),
  { terms: pay("11 × 8, 100003 × 0.2, 300 × 10, 400 × 16, 13 × 40") },
);
messages(
  "haiku 5.5, three calls of 40k",
  "claude-haiku-5-5",
  writeMessage(
    "claude-haiku-5-5",
    '{"input_tokens":120000,"output_tokens":300,"iterations":[{"type":"message","input_tokens":40000,"output_tokens":100},{"type":"message","input_tokens":40000,"output_tokens":100},{"type":"message","input_tokens":40000,"output_tokens":100}]}',
  ),
  { terms: pay("120000 × 0.1, 300 × 0.5") },
);
messages(
  "haiku 5.5, one of two calls is long",
  "claude-haiku-5-5",
  writeMessage(
    "claude-haiku-5-5",
    '{"input_tokens":140001,"output_tokens":300,"iterations":[{"type":"message","input_tokens":100001,"output_tokens":100},{"type":"message","input_tokens":40000,"output_tokens":200}]}',
  ),
  { terms: pay("100001 × 0.5, 100 × 2.5, 40000 × 0.1, 200 × 0.5") },
);
messages(
  "haiku 5.5, exactly 100,000",
  "claude-haiku-5-5",
  writeMessage("claude-haiku-5-5", '{"input_tokens":100000,"output_tokens":1}'),
  { terms: pay("100000 × 0.1, 1 × 0.5") },
);
messages(
  "haiku 5.5, 100,001 with reads",
  "claude-haiku-5-5",
  writeMessage("claude-haiku-5-5", '{"input_tokens":1,"cache_read_input_tokens":100000,"output_tokens":1}'),
  { terms: pay("1 × 0.5, 100000 × 0.05, 1 × 2.5") },
);
messages(
  "haiku 5.5 in the US",
  "claude-haiku-5-5",
  writeMessage("claude-haiku-5-5", '{"input_tokens":777,"output_tokens":3,"inference_geo":"us"}'),
  { terms: pay("777 × 0.1, 3 × 0.5"), factor: "1.1" },
);
messages(
  "batch",
  "claude-haiku-4-5",
  writeMessage("claude-haiku-4-5", '{"input_tokens":777,"output_tokens":3,"service_tier":"batch"}'),
  { terms: pay("777 × 1, 3 × 5"), factor: "0.5" },
);
messages(
  "a tier without a price",
  "claude-haiku-4-5",
  writeMessage("claude-haiku-4-5", '{"input_tokens":777,"output_tokens":3,"service_tier":"golden"}'),
  { basis: "unpriced" },
);
messages(
  "web searches",
  "claude-haiku-4-5",
  writeMessage(
    "claude-haiku-4-5",
    '{"input_tokens":10,"output_tokens":3,"server_tool_use":{"web_search_requests":3}}',
  ),
  {
    terms: pay("10 × 1, 3 × 5"),
    calls: pay("3 × 10"),
  },
);
messages(
  "refusal cyber",
  "claude-fable-5-2",
  writeMessage(
    "claude-fable-5-2",
    '{"input_tokens":999,"output_tokens":0}',
    '"stop_reason":"refusal","stop_details":{"type":"refusal","category":"cyber"},"content":[]',
  ),
  { isFree: true },
);
messages(
  "refusal of another category",
  "claude-fable-5-2",
  writeMessage(
    "claude-fable-5-2",
    '{"input_tokens":999,"output_tokens":0}',
    '"stop_reason":"refusal","stop_details":{"type":"refusal","category":"bio"},"content":[]',
  ),
  { terms: pay("999 × 8"), suspect: true },
);
messages(
  "compaction and message",
  "claude-haiku-4-5",
  writeMessage(
    "claude-haiku-4-5",
    '{"input_tokens":20,"output_tokens":5,"iterations":[{"type":"compaction","input_tokens":5000,"output_tokens":70},{"type":"message","input_tokens":20,"output_tokens":5}]}',
  ),
  { terms: pay("5020 × 1, 75 × 5") },
);
messages(
  "fallback to another model",
  "claude-fable-5-2",
  writeMessage(
    "claude-haiku-4-5",
    '{"input_tokens":20,"output_tokens":5,"iterations":[{"type":"message","model":"claude-fable-5-2","input_tokens":100,"output_tokens":1},{"type":"fallback_message","model":"claude-haiku-4-5","input_tokens":20,"output_tokens":5}]}',
  ),
  { terms: pay("100 × 8, 1 × 40, 20 × 1, 5 × 5") },
);
responses(
  "6.2 sol at the threshold",
  "gpt-6.2-sol",
  writeResponse("gpt-6.2-sol", responsesUsage(272000, 7)),
  { terms: pay("272000 × 2, 7 × 10") },
);
responses("6.2 sol above it", "gpt-6.2-sol", writeResponse("gpt-6.2-sol", responsesUsage(272001, 7)), {
  terms: pay("272001 × 4, 7 × 15"),
});
for (const [tier, f] of [
  ["ultrafast", "3"],
  ["fast", "2"],
  ["priority", "2"],
  ["flex", "0.5"],
] as const)
  responses(
    `6.2 sol ${tier}`,
    "gpt-6.2-sol",
    writeResponse("gpt-6.2-sol", responsesUsage(333, 7), undefined, `,"service_tier":"${tier}"`),
    {
      terms: pay("333 × 2, 7 × 10"),
      factor: f,
    },
  );
responses(
  "6.2 sol ultrafast and long",
  "gpt-6.2-sol",
  writeResponse("gpt-6.2-sol", responsesUsage(300000, 7), undefined, `,"service_tier":"ultrafast"`),
  { terms: pay("300000 × 4, 7 × 15"), factor: "3" },
);
responses(
  "12-hour writes",
  "gpt-6.2-sol",
  writeResponse(
    "gpt-6.2-sol",
    responsesUsage(
      1000,
      7,
      "",
      ',"input_tokens_details":{"cached_tokens":100,"cache_write_tokens":600,"cache_write_tokens_details":{"ttl_12h_tokens":250}}',
    ),
  ),
  { terms: pay("300 × 2, 100 × 0.1, 350 × 2.5, 250 × 5, 7 × 10") },
);
responses(
  "code interpreter",
  "gpt-5.4",
  writeResponse(
    "gpt-5.4",
    responsesUsage(100, 7),
    '"output":[{"type":"code_interpreter_call","id":"ci","container_id":"cntr_1","status":"completed"},{"type":"message","role":"assistant","content":[{"type":"output_text","text":"x"}]}]',
  ),
  {
    basis: "unpriced",
    least: pay("100 × 2.5, 7 × 15"),
  },
);
responses(
  "two web searches and an opened page",
  "gpt-5.4",
  writeResponse(
    "gpt-5.4",
    responsesUsage(100, 7),
    '"output":[{"type":"web_search_call","id":"a","action":{"type":"search","query":"x"}},{"type":"web_search_call","id":"b","action":{"type":"search","query":"y"}},{"type":"web_search_call","id":"c","action":{"type":"open_page"}},{"type":"message","role":"assistant","content":[{"type":"output_text","text":"x"}]}]',
  ),
  {
    terms: pay("100 × 2.5, 7 × 15"),
    calls: pay("2 × 10"),
  },
);
content(
  "argon until 30 November",
  "gemini-4-argon",
  writeContent(
    "gemini-4-argon",
    '{"promptTokenCount":1000,"cachedContentTokenCount":250,"candidatesTokenCount":9,"totalTokenCount":1009}',
  ),
  { terms: pay("750 × 2, 250 × 0.1, 9 × 10") },
);
content(
  "argon with two queries, one empty",
  "gemini-4-argon",
  writeContent(
    "gemini-4-argon",
    '{"promptTokenCount":1000,"candidatesTokenCount":9,"totalTokenCount":1009}',
    ',"groundingMetadata":{"webSearchQueries":["a","b",""]}',
  ),
  {
    terms: pay("1000 × 2, 9 × 10"),
    calls: pay("2 × 14"),
  },
);
content(
  "2.5 flash pays by the prompt",
  "gemini-2.5-flash",
  writeContent(
    "gemini-2.5-flash",
    '{"promptTokenCount":1000,"candidatesTokenCount":9,"totalTokenCount":1009}',
    ',"groundingMetadata":{"webSearchQueries":["a","b"]}',
  ),
  {
    terms: pay("1000 × 0.3, 9 × 2.5"),
    calls: pay("1 × 35"),
  },
);
content(
  "3.8 flash priority",
  "gemini-3.8-flash",
  writeContent(
    "gemini-3.8-flash",
    '{"promptTokenCount":1000,"candidatesTokenCount":9,"totalTokenCount":1009,"serviceTier":"priority"}',
  ),
  { terms: pay("1000 × 0.75, 9 × 3.75"), factor: "1.8" },
);
content(
  "2.5 flash priority",
  "gemini-2.5-flash",
  writeContent(
    "gemini-2.5-flash",
    '{"promptTokenCount":1000,"candidatesTokenCount":9,"totalTokenCount":1009,"serviceTier":"priority"}',
  ),
  { basis: "unpriced" },
);
content(
  "vertex flex",
  "gemini-2.5-flash",
  writeContent(
    "gemini-2.5-flash",
    '{"promptTokenCount":1000,"candidatesTokenCount":9,"totalTokenCount":1009,"trafficType":"ON_DEMAND_FLEX"}',
  ),
  { terms: pay("1000 × 0.3, 9 × 2.5"), factor: "0.5" },
);
content(
  "audio, partly cached",
  "gemini-2.5-flash",
  writeContent(
    "gemini-2.5-flash",
    '{"promptTokenCount":1000,"cachedContentTokenCount":300,"promptTokensDetails":[{"modality":"AUDIO","tokenCount":600},{"modality":"TEXT","tokenCount":400}],"cacheTokensDetails":[{"modality":"AUDIO","tokenCount":200},{"modality":"TEXT","tokenCount":100}],"candidatesTokenCount":9,"totalTokenCount":1009}',
  ),
  { terms: pay("300 × 0.3, 100 × 0.03, 400 × 1, 200 × 0.1, 9 × 2.5") },
);
content(
  "gemini embedding",
  "gemini-embedding-001",
  '{"embedding":{"values":[0.1]},"usageMetadata":{"promptTokenCount":77}}',
  { terms: pay("77 × 0.15") },
);

testCases(cases);
