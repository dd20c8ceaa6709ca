// Tests answers that count something newer than this program, or that contradict themselves. Their lines are
// marked as suspect. Tokens of a new cache lifetime, or in an iteration of a new kind, are charged.

import { collectCases, pay, type Term, testCases, type Wanted } from "./oracle.ts";
import { responsesUsage, writeContent, writeMessage, writeResponse } from "./wire.ts";

const { cases, add } = collectCases();
const SUSPECT = { suspect: true } as const;

const HAIKU = "claude-haiku-4-5";
const CLAUDE: readonly Term[] = [
  [1000, "1"],
  [50, "5"],
];
const claude = (id: string, more: string, wanted: Wanted = { terms: CLAUDE, ...SUSPECT }): void =>
  add("messages")(id, HAIKU, writeMessage(HAIKU, `{"input_tokens":1000,"output_tokens":50${more}}`), wanted);

claude(
  "a cache lifetime that is new is a write, and suspect",
  ',"cache_creation_input_tokens":300,"cache_creation":{"ephemeral_24h_input_tokens":300}',
  { terms: [...CLAUDE, [300, "1.25"]], ...SUSPECT },
);
claude(
  "a new lifetime without a total is not dropped",
  ',"cache_creation":{"ephemeral_24h_input_tokens":300}',
  { terms: [...CLAUDE, [300, "1.25"]], ...SUSPECT },
);
claude("a new lifetime of zero tokens is fine", ',"cache_creation":{"ephemeral_24h_input_tokens":0}', {
  terms: CLAUDE,
});
claude("a split by lifetime that is a word", ',"cache_creation":"none"');
claude("a split by lifetime that is an empty list is fine", ',"cache_creation":[]', { terms: CLAUDE });
claude("a region that is new", ',"inference_geo":"eu"');
claude("a region that is an anonymised word is fine", ',"inference_geo":"<REGION>"', { terms: CLAUDE });
claude("a hosted tool that is counted in text", ',"server_tool_use":{"deep_crawl":"3"}');
claude("a hosted tool that is counted deeper inside", ',"server_tool_use":{"deep":{"crawl":{"pages":3}}}');
claude("hosted tools that are a word", ',"server_tool_use":"3"');
claude(
  "a word next to hosted tools costs nothing",
  ',"server_tool_use":{"note":"none","old":{"a":0,"b":"0"}}',
  {
    terms: CLAUDE,
  },
);
claude("tokens of a new name", ',"storage_tokens":9');
claude(
  "tokens under Chat's names are nothing new",
  ',"prompt_tokens":1000,"completion_tokens":50,"total_tokens":1050',
  { terms: CLAUDE },
);
claude("a new detail of the output", ',"output_tokens_details":{"thinking_tokens":5,"image_tokens":9}');
claude("details of the output that are a word", ',"output_tokens_details":"none"');
const pass = (type: string, input: number, output: number, model = ""): string =>
  `{"type":"${type}","input_tokens":${input},"output_tokens":${output}${model && `,"model":"${model}"`}}`;
claude("an iteration of a new kind", `,"iterations":[${pass("message", 1000, 50)},${pass("dream", 70, 8)}]`, {
  terms: [...CLAUDE, [70, "1"], [8, "5"]],
  ...SUSPECT,
});
claude(
  "an iteration of a new kind that used nothing is fine",
  `,"iterations":[${pass("message", 1000, 50)},${pass("dream", 0, 0)}]`,
  { terms: CLAUDE },
);
claude(
  "an iteration of a known kind is a part",
  `,"iterations":[${pass("message", 1000, 50)},${pass("compaction", 70, 8)}]`,
  {
    terms: [...CLAUDE, [70, "1"], [8, "5"]],
  },
);
claude(
  "a refused hop inside of a fallback",
  `,"iterations":[${pass("message", 408, 0, HAIKU)},${pass("fallback_message", 1000, 50, HAIKU)}]`,
  { terms: pay("1408 × 1, 50 × 5"), ...SUSPECT },
);
claude(
  "iterations that do not add up",
  `,"iterations":[${pass("message", 400, 20)},${pass("message", 500, 30)}]`,
);
claude(
  "iterations that add up are fine",
  `,"iterations":[${pass("message", 400, 20)},${pass("message", 600, 30)}]`,
  { terms: CLAUDE },
);
claude("iterations that are a word", ',"iterations":"two"');
claude("an iteration that is a number", `,"iterations":[${pass("message", 1000, 50)},7]`);

const streamed = (...events: readonly object[]): string =>
  events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join("");
const start = (usage: object): object => ({ type: "message_start", message: { model: HAIKU, usage } });
const delta = (usage: object): object => ({
  type: "message_delta",
  delta: { stop_reason: "end_turn" },
  usage,
});
const STOP = { type: "message_stop" };
const stream = (id: string, events: readonly object[], wanted: Wanted): void =>
  add("messages")(id, HAIKU, streamed(...events), wanted);
const STARTED = { input_tokens: 1000, cache_read_input_tokens: 5000, output_tokens: 1 };
const READ: readonly Term[] = [...CLAUDE, [5000, "0.1"]];

stream(
  "input that shrinks keeps its larger count",
  [start(STARTED), delta({ input_tokens: 0, output_tokens: 50 }), STOP],
  { terms: READ, ...SUSPECT },
);
stream(
  "a cache that shrinks keeps its larger count",
  [start(STARTED), delta({ cache_read_input_tokens: 0, output_tokens: 50 }), STOP],
  { terms: READ, ...SUSPECT },
);
stream(
  "input that moves into the cache is fine",
  [
    start({ input_tokens: 6000, output_tokens: 1 }),
    delta({ input_tokens: 1000, cache_read_input_tokens: 5000, output_tokens: 50 }),
    STOP,
  ],
  { terms: READ },
);
stream(
  "input that grows is fine",
  [start({ input_tokens: 10, output_tokens: 1 }), delta({ ...STARTED, output_tokens: 50 }), STOP],
  { terms: READ },
);
const LOOP = [{ type: "message", input_tokens: 900, output_tokens: 50 }];
stream(
  "input that shrinks to its iterations is fine",
  [
    start({ input_tokens: 1000, output_tokens: 1 }),
    delta({ input_tokens: 900, output_tokens: 50, iterations: LOOP }),
    STOP,
  ],
  { terms: pay("900 × 1, 50 × 5") },
);
const ENDED = [start({ input_tokens: 1000, output_tokens: 1 }), delta({ output_tokens: 50 })];
stream("a last report after the last", [...ENDED, delta({ output_tokens: 60 }), STOP], {
  terms: pay("1000 × 1, 60 × 5"),
  ...SUSPECT,
});
const MORE = { ...delta({ output_tokens: 500 }), delta: {} };
stream(
  "output that shrinks has its last count",
  [start({ input_tokens: 1000, output_tokens: 900 }), MORE, delta({ output_tokens: 50 }), STOP],
  { terms: CLAUDE, ...SUSPECT },
);
stream("the last report twice is fine", [...ENDED, delta({ output_tokens: 50 }), STOP], { terms: CLAUDE });
stream(
  "usage after the end",
  [...ENDED, STOP, { type: "message_delta", delta: {}, usage: { output_tokens: 60 } }],
  { terms: pay("1000 × 1, 60 × 5"), ...SUSPECT },
);
stream(
  "usage that comes only after the end",
  [start({ input_tokens: 1000, output_tokens: 1 }), STOP, delta({ output_tokens: 50 })],
  { terms: CLAUDE, ...SUSPECT },
);

const GPT = "gpt-5.4";
const OPENAI: readonly Term[] = [
  [1000, "2.5"],
  [50, "15"],
];
const gpt = (
  id: string,
  details: string,
  wanted: Wanted,
  body = writeResponse(GPT, responsesUsage(1000, 50, details)),
): void => add("responses")(id, GPT, body, wanted);
const inside = (details: string): string => `,"input_tokens_details":${details}`;
const outside = (details: string): string => `,"output_tokens_details":${details}`;

gpt(
  "hidden tokens in the total",
  "",
  { terms: OPENAI, ...SUSPECT },
  writeResponse(GPT, '{"input_tokens":1000,"output_tokens":50,"total_tokens":1140}'),
);
gpt(
  "one token that is in no part",
  "",
  { terms: OPENAI, ...SUSPECT },
  writeResponse(GPT, '{"input_tokens":1000,"output_tokens":50,"total_tokens":1051}'),
);
gpt(
  "a lifetime of written tokens that is new",
  inside('{"cache_write_tokens":100,"cache_write_tokens_details":{"ttl_24h_tokens":100}}'),
  { terms: OPENAI, ...SUSPECT },
);
gpt("a new detail of the prompt", inside('{"smell_tokens":3}'), { terms: OPENAI, ...SUSPECT });
gpt("a new detail of the output", outside('{"smell_tokens":3}'), { terms: OPENAI, ...SUSPECT });
gpt("details that are a word", inside('"none"'), { terms: OPENAI, ...SUSPECT });
gpt("details that are an empty list are fine", inside("[]"), { terms: OPENAI });
gpt("pictures in the output have a price of their own", outside('{"image_tokens":20}'), {
  basis: "unpriced",
  least: pay("1000 × 2.5, 30 × 15"),
});
gpt("pictures that are cached are counted once", inside('{"cached_tokens":950,"image_tokens":350}'), {
  terms: pay("950 × 0.25, 50 × 2.5, 50 × 15"),
});
gpt(
  "tokens that are both read and written are counted once",
  inside('{"cached_tokens":1000,"cache_write_tokens":1000}'),
  { terms: OPENAI, ...SUSPECT },
);

const named = (more: string): string =>
  writeResponse(GPT, `{"input_tokens":1000,"output_tokens":50,"total_tokens":1050${more}}`);
gpt("tokens of a name that is new", "", { terms: OPENAI, ...SUSPECT }, named(',"storage_tokens":9'));
gpt("no tokens of a name that is new", "", { terms: OPENAI }, named(',"storage_tokens":0,"queue_time":3'));

const item = (type: string, more = ""): string => `"output":[{"type":"${type}","id":"x"${more}}]`;
const respond = (more: string, top = ""): string => writeResponse(GPT, responsesUsage(1000, 50), more, top);
const TEXT = '"output":[{"type":"message","content":[{"type":"output_text","text":"hi"}]}]';
gpt("a hosted call of a new kind", "", { terms: OPENAI, ...SUSPECT }, respond(item("deep_crawl_call")));
gpt(
  "a call of a new kind that the client answers is fine",
  "",
  { terms: OPENAI },
  respond(item("deep_crawl_call", ',"call_id":"c"')),
);
gpt("hosted tools of xAI that are a word", ',"server_side_tool_usage_details":"3"', {
  terms: OPENAI,
  ...SUSPECT,
});

const search = item("web_search_call", ',"action":{"type":"search"}');
const tools = (usage: string): string => `,"tool_usage":${usage}`;
gpt(
  "searches that OpenAI counts itself",
  "",
  { terms: OPENAI, calls: pay("4 × 10") },
  respond(search, tools('{"web_search":{"num_requests":4}}')),
);
gpt(
  "a search that no item shows",
  "",
  { terms: OPENAI, calls: pay("2 × 10") },
  respond(TEXT, tools('{"web_search":{"num_requests":2}}')),
);
gpt(
  "fewer searches than the answer shows",
  "",
  { terms: OPENAI, calls: pay("1 × 10"), ...SUSPECT },
  respond(search, tools('{"web_search":{"num_requests":0}}')),
);
gpt(
  "a new tool that OpenAI counts",
  "",
  { terms: OPENAI, ...SUSPECT },
  respond(TEXT, tools('{"deep_crawl":{"num_requests":1}}')),
);
gpt(
  "searches that are counted as a word",
  "",
  { terms: OPENAI, ...SUSPECT },
  respond(TEXT, tools('{"web_search":{"num_requests":"many"}}')),
);
const PAINTED =
  '{"input_tokens":50,"input_tokens_details":{"image_tokens":0,"text_tokens":50},"output_tokens":4160,"output_tokens_details":{"image_tokens":4160,"text_tokens":0},"total_tokens":4210}';
const painter = `"tools":[{"type":"image_generation","model":"gpt-image-1.5"}],${item("image_generation_call")}`;
gpt(
  "pictures whose tokens OpenAI counts",
  "",
  { terms: [...OPENAI, [50, "5"], [4160, "32"]] },
  respond(painter, tools(`{"image_gen":${PAINTED}}`)),
);
gpt(
  "pictures of a model that nothing names",
  "",
  { basis: "unpriced", least: OPENAI },
  respond(item("image_generation_call"), tools(`{"image_gen":${PAINTED}}`)),
);
gpt(
  "pictures that OpenAI does not count",
  "",
  { basis: "unpriced", least: OPENAI },
  respond(painter, tools('{"image_gen":{"input_tokens":0,"output_tokens":0}}')),
);
gpt(
  "pictures whose tokens cannot be read",
  "",
  { terms: OPENAI, ...SUSPECT },
  respond(TEXT, tools('{"image_gen":{"output_tokens":"many"}}')),
);

const completed = (output: number): object => ({
  type: "response.completed",
  response: {
    object: "response",
    status: "completed",
    model: GPT,
    output: [],
    usage: { input_tokens: 1000, output_tokens: output },
  },
});
gpt(
  "a final after a final",
  "",
  { terms: pay("1000 × 2.5, 60 × 15"), ...SUSPECT },
  streamed(completed(50), completed(60)),
);
gpt("the same final twice is fine", "", { terms: OPENAI }, streamed(completed(50), completed(50)));

const chunk = (more: object): object => ({ model: GPT, choices: [], ...more });
const FINISH = { choices: [{ delta: { content: "hi" }, finish_reason: "stop" }] };
const used = (output: number) => ({ usage: { prompt_tokens: 1000, completion_tokens: output } });
const chat = (id: string, body: string, wanted: Wanted): void => add("chat")(id, GPT, body, wanted);
const DONE = "data: [DONE]\n\n";
chat("usage after [DONE]", streamed(chunk(FINISH), chunk(used(50))) + DONE + streamed(chunk(used(60))), {
  terms: pay("1000 × 2.5, 60 × 15"),
  ...SUSPECT,
});
chat(
  "usage that grows until [DONE] is fine",
  streamed(chunk({ ...FINISH, ...used(40) }), chunk(used(50))) + DONE,
  { terms: OPENAI },
);

const counted = (more: object): string =>
  streamed(chunk({ ...FINISH, usage: { ...used(50).usage, ...more } })) + DONE;
chat("Chat's tokens of a name that is new", counted({ storage_tokens: 9 }), { terms: OPENAI, ...SUSPECT });
chat("what LiteLLM read from the cache", counted({ cache_read_input_tokens: 900 }), {
  terms: pay("900 × 0.25, 100 × 2.5, 50 × 15"),
});

const GEMINI = "gemini-2.5-flash";
const GOOGLE: readonly Term[] = [
  [1000, "0.3"],
  [50, "2.5"],
];
const gemini = (
  id: string,
  more: string,
  wanted: Wanted = { terms: GOOGLE, ...SUSPECT },
  grounding = "",
): void =>
  add("content")(
    id,
    GEMINI,
    writeContent(GEMINI, `{"promptTokenCount":1000,"candidatesTokenCount":50${more}}`, grounding),
    wanted,
  );
const modality = (name: string): string => `[{"modality":${name},"tokenCount":9}]`;

gemini("hidden tokens in Gemini's total", ',"totalTokenCount":1140');
gemini("a new modality in the prompt", `,"promptTokensDetails":${modality('"SMELL"')}`);
gemini("a new modality in the output", `,"candidatesTokensDetails":${modality('"SMELL"')}`);
gemini("a new modality as a number", `,"promptTokensDetails":${modality("6")}`);
gemini("documents are text", `,"promptTokensDetails":${modality('"DOCUMENT"')}`, { terms: GOOGLE });
gemini("text as a number is nothing new", `,"promptTokensDetails":${modality("1")}`, { terms: GOOGLE });
gemini("modalities that are a word", ',"promptTokensDetails":"none"');
gemini("a count of a new name", ',"dreamsTokenCount":9');
const chunks = '"groundingChunks":[{"web":{"uri":"https://a.example"}}]';
gemini("pages that were found by no reported search", "", undefined, `,"groundingMetadata":{${chunks}}`);
gemini("searches for pictures", "", undefined, ',"groundingMetadata":{"imageSearchQueries":["cat"]}');
gemini(
  "pages that the request named are fine",
  "",
  { terms: GOOGLE },
  `,"groundingMetadata":{${chunks}},"urlContextMetadata":{}`,
);
gemini(
  "pages that a search found are charged as searches",
  "",
  { terms: GOOGLE, calls: pay("1 × 35") },
  `,"groundingMetadata":{"webSearchQueries":["a"],${chunks}}`,
);

add("embeddings")(
  "tokens of embeddings that are in the total only",
  "text-embedding-3-small",
  '{"object":"list","data":[],"model":"text-embedding-3-small","usage":{"prompt_tokens":10,"total_tokens":1000}}',
  { terms: pay("10 × 0.02"), ...SUSPECT },
);

testCases(cases);
