// Counts that cannot be read, and counts under other names.

import { collectCases, testCases, type Wanted } from "./oracle.ts";
import { responsesUsage, writeChat, writeContent, writeMessage, writeResponse } from "./wire.ts";

const { cases, add } = collectCases();
const messages = add("messages");
const responses = add("responses");
const content = add("content");
const messageCount = (id: string, usage: string, rest: Wanted) =>
  messages(`count ${id}`, "claude-haiku-4-5", writeMessage("claude-haiku-4-5", usage), rest);
const UNKNOWN: Wanted = { basis: "unknown" };
messageCount("string", '{"input_tokens":"1000","output_tokens":5}', UNKNOWN);
messageCount("true", '{"input_tokens":true,"output_tokens":5}', UNKNOWN);
messageCount("list", '{"input_tokens":[1000],"output_tokens":5}', UNKNOWN);
messageCount("object", '{"input_tokens":{"value":3},"output_tokens":5}', UNKNOWN);
messageCount("output 1e-3", '{"input_tokens":10,"output_tokens":1e-3}', UNKNOWN);
messageCount("2^53", '{"input_tokens":9007199254740992,"output_tokens":5}', UNKNOWN);
messageCount("2^53-1", '{"input_tokens":9007199254740991,"output_tokens":5}', {
  terms: [
    [9007199254740991n, "1"],
    [5, "5"],
  ],
});
messageCount("1e3, a whole number", '{"input_tokens":1e3,"output_tokens":5}', {
  terms: [
    [1000, "1"],
    [5, "5"],
  ],
});
messageCount("1000.0, a whole number", '{"input_tokens":1000.0,"output_tokens":5}', {
  terms: [
    [1000, "1"],
    [5, "5"],
  ],
});
messageCount(
  "cached as text",
  '{"input_tokens":10,"cache_read_input_tokens":"5","output_tokens":5}',
  UNKNOWN,
);
messageCount(
  "lifetimes larger than writes",
  '{"input_tokens":10,"cache_creation_input_tokens":5,"cache_creation":{"ephemeral_1h_input_tokens":50},"output_tokens":5}',
  {
    terms: [
      [10, "1"],
      [50, "2"],
      [5, "5"],
    ],
    suspect: true,
  },
);
messageCount(
  "an unknown call",
  '{"input_tokens":10,"output_tokens":5,"server_tool_use":{"web_search_requests":0,"code_execution_requests":2}}',
  {
    terms: [
      [10, "1"],
      [5, "5"],
    ],
    suspect: true,
  },
);
messageCount(
  "known calls, and none of an unknown kind",
  '{"input_tokens":10,"output_tokens":5,"server_tool_use":{"web_fetch_requests":3,"code_execution_requests":0,"note":"x"}}',
  {
    terms: [
      [10, "1"],
      [5, "5"],
    ],
  },
);
messageCount("usage is text", '"none"', UNKNOWN);
messageCount("usage null", "null", UNKNOWN);
responses(
  "r cached larger than input",
  "gpt-5.4",
  writeResponse("gpt-5.4", responsesUsage(100, 7, "", ',"input_tokens_details":{"cached_tokens":150}')),
  {
    suspect: true,
    terms: [
      [150, "0.25"],
      [7, "15"],
    ],
  },
);
responses(
  "r chat's names",
  "gpt-5.4",
  writeResponse("gpt-5.4", '{"prompt_tokens":100,"completion_tokens":7,"total_tokens":107}'),
  {
    terms: [
      [100, "2.5"],
      [7, "15"],
    ],
  },
);
responses(
  "r both names",
  "gpt-5.4",
  writeResponse(
    "gpt-5.4",
    '{"prompt_tokens":100,"completion_tokens":7,"input_tokens":90,"output_tokens":6,"total_tokens":96}',
  ),
  {
    terms: [
      [90, "2.5"],
      [6, "15"],
    ],
  },
);
responses(
  "r reasoning beside output",
  "gpt-5.4",
  writeResponse(
    "gpt-5.4",
    '{"input_tokens":100,"output_tokens":7,"output_tokens_details":{"reasoning_tokens":40},"total_tokens":147}',
  ),
  {
    terms: [
      [100, "2.5"],
      [47, "15"],
    ],
  },
);
responses(
  "r total far from its parts",
  "gpt-5.4",
  writeResponse("gpt-5.4", '{"input_tokens":100,"output_tokens":7,"total_tokens":200}'),
  {
    terms: [
      [100, "2.5"],
      [7, "15"],
    ],
    suspect: true,
  },
);
responses(
  "r total near its parts",
  "gpt-5.4",
  writeResponse("gpt-5.4", '{"input_tokens":100,"output_tokens":7,"total_tokens":110}'),
  {
    terms: [
      [100, "2.5"],
      [7, "15"],
    ],
    suspect: true,
  },
);
responses(
  "r total of 0",
  "gpt-5.4",
  writeResponse("gpt-5.4", '{"input_tokens":100,"output_tokens":7,"total_tokens":0}'),
  {
    terms: [
      [100, "2.5"],
      [7, "15"],
    ],
  },
);
responses(
  "r detail as text",
  "gpt-5.4",
  writeResponse(
    "gpt-5.4",
    '{"input_tokens":100,"input_tokens_details":{"cached_tokens":"50"},"output_tokens":7}',
  ),
  {
    suspect: true,
    terms: [
      [100, "2.5"],
      [7, "15"],
    ],
  },
);
responses(
  "r usage beside response",
  "gpt-5.4",
  `event: response.completed\ndata: {"type":"response.completed","response":{"id":"r","object":"response","status":"completed","model":"gpt-5.4","output":[]},"usage":{"input_tokens":100,"output_tokens":7}}\n\n`,
  {
    terms: [
      [100, "2.5"],
      [7, "15"],
    ],
  },
);
content(
  "g negative thoughts",
  "gemini-2.5-flash",
  writeContent(
    "gemini-2.5-flash",
    '{"promptTokenCount":1000,"candidatesTokenCount":9,"thoughtsTokenCount":-3}',
  ),
  UNKNOWN,
);
content(
  "g total far from its parts",
  "gemini-2.5-flash",
  writeContent(
    "gemini-2.5-flash",
    '{"promptTokenCount":1000,"candidatesTokenCount":9,"toolUsePromptTokenCount":50,"totalTokenCount":3000}',
  ),
  {
    terms: [
      [1050, "0.3"],
      [9, "2.5"],
    ],
    suspect: true,
  },
);
content(
  "g total with tools' prompt",
  "gemini-2.5-flash",
  writeContent(
    "gemini-2.5-flash",
    '{"promptTokenCount":100,"candidatesTokenCount":9,"toolUsePromptTokenCount":500,"totalTokenCount":609}',
  ),
  {
    terms: [
      [600, "0.3"],
      [9, "2.5"],
    ],
  },
);
content(
  "g output left out of a body",
  "gemini-2.5-flash",
  writeContent("gemini-2.5-flash", '{"promptTokenCount":1000,"totalTokenCount":1000}'),
  { terms: [[1000, "0.3"]], suspect: true },
);
content(
  "g no output, and none reported",
  "gemini-2.5-flash",
  writeContent("gemini-2.5-flash", '{"promptTokenCount":1000,"totalTokenCount":1000}').replace('"hi"', '""'),
  { terms: [[1000, "0.3"]] },
);
content(
  "g output left out of a stream",
  "gemini-2.5-flash",
  `data: ${writeContent("gemini-2.5-flash", '{"promptTokenCount":1000,"totalTokenCount":1000}')}\n\n`,
  { terms: [[1000, "0.3"]], suspect: true },
);
content(
  "g prompt as text",
  "gemini-2.5-flash",
  writeContent("gemini-2.5-flash", '{"promptTokenCount":"1000","candidatesTokenCount":9}'),
  UNKNOWN,
);
add("chat")(
  "chat usage",
  "gpt-5.4",
  writeChat(
    "gpt-5.4",
    '{"prompt_tokens":100,"prompt_tokens_details":{"cached_tokens":40},"completion_tokens":7,"total_tokens":107}',
  ),
  {
    terms: [
      [60, "2.5"],
      [40, "0.25"],
      [7, "15"],
    ],
  },
);
add("chat")(
  "chat total with thinking that is in no part",
  "gpt-5.4",
  writeChat("gpt-5.4", '{"prompt_tokens":35,"completion_tokens":12,"total_tokens":109}'),
  {
    terms: [
      [35, "2.5"],
      [12, "15"],
    ],
  },
);
add("embeddings")(
  "embeddings",
  "text-embedding-3-small",
  '{"object":"list","data":[{"object":"embedding","index":0,"embedding":[0.1]}],"model":"text-embedding-3-small","usage":{"prompt_tokens":12345,"total_tokens":12345}}',
  { terms: [[12345, "0.02"]] },
);
add("embeddings")(
  "embeddings, count as text",
  "text-embedding-3-small",
  '{"object":"list","data":[],"model":"text-embedding-3-small","usage":{"prompt_tokens":"12345","total_tokens":12345}}',
  UNKNOWN,
);

testCases(cases);
