// Tests what an answer costs if its counts cannot be read or have other names.

import { collectCases, pay, testCases, type Wanted } from "./oracle.ts";
import { writeChat, writeContent, writeMessage, writeResponse } from "./wire.ts";

const { cases, add } = collectCases();
const messages = add("messages");
const responses = add("responses");
const content = add("content");
const messageCount = (id: string, usage: string, rest: Wanted) =>
  messages(`count ${id}`, "claude-haiku-4-5", writeMessage("claude-haiku-4-5", usage), rest);
const UNKNOWN: Wanted = { basis: "unknown" };
messageCount("1e3, a whole number", '{"input_tokens":1e3,"output_tokens":5}', {
  terms: pay("1000 × 1, 5 × 5"),
});
messageCount("1000.0, a whole number", '{"input_tokens":1000.0,"output_tokens":5}', {
  terms: pay("1000 × 1, 5 × 5"),
});
messageCount("usage is text", '"none"', UNKNOWN);
messageCount("usage null", "null", UNKNOWN);
responses(
  "Responses total of 0",
  "gpt-5.4",
  writeResponse("gpt-5.4", '{"input_tokens":100,"output_tokens":7,"total_tokens":0}'),
  { terms: pay("100 × 2.5, 7 × 15") },
);
content(
  "content total with tools' prompt",
  "gemini-2.5-flash",
  writeContent(
    "gemini-2.5-flash",
    '{"promptTokenCount":100,"candidatesTokenCount":9,"toolUsePromptTokenCount":500,"totalTokenCount":609}',
  ),
  { terms: pay("600 × 0.3, 9 × 2.5") },
);
content(
  "content output left out of a body",
  "gemini-2.5-flash",
  writeContent("gemini-2.5-flash", '{"promptTokenCount":1000,"totalTokenCount":1000}'),
  { terms: pay("1000 × 0.3"), suspect: true },
);
content(
  "content no output, and none reported",
  "gemini-2.5-flash",
  writeContent("gemini-2.5-flash", '{"promptTokenCount":1000,"totalTokenCount":1000}').replace('"hi"', '""'),
  { terms: pay("1000 × 0.3") },
);
content(
  "content output left out of a stream",
  "gemini-2.5-flash",
  `data: ${writeContent("gemini-2.5-flash", '{"promptTokenCount":1000,"totalTokenCount":1000}')}\n\n`,
  { terms: pay("1000 × 0.3"), suspect: true },
);
add("chat")(
  "chat total with thinking that is in no part",
  "gpt-5.4",
  writeChat("gpt-5.4", '{"prompt_tokens":35,"completion_tokens":12,"total_tokens":109}'),
  { terms: pay("35 × 2.5, 12 × 15") },
);
add("embeddings")(
  "embeddings",
  "text-embedding-3-small",
  '{"object":"list","data":[{"object":"embedding","index":0,"embedding":[0.1]}],"model":"text-embedding-3-small","usage":{"prompt_tokens":12345,"total_tokens":12345}}',
  { terms: pay("12345 × 0.02") },
);

testCases(cases);
