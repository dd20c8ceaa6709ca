import { describe, expect, test } from "bun:test";

import {
  boundCost,
  forecastCost,
  type Quote,
  type ReservedRequest,
} from "../../../src/billing/limits/reserve.ts";
import { chat } from "../../../src/dialects/formats/chat.ts";
import { content } from "../../../src/dialects/formats/content.ts";
import { messages } from "../../../src/dialects/formats/messages.ts";
import { responses } from "../../../src/dialects/formats/responses.ts";

/** One dollar for each token of output, nothing for input. */
const outputOnly: Quote = ({ output = 0 }) => String(output);
/** One dollar for each token of input. */
const inputOnly: Quote = ({ input = 0 }) => String(input);

/** What the bound has for a provider's own prompt. */
const OWN = 500;

function request(body: string, more: Partial<ReservedRequest> = {}): ReservedRequest {
  const quotes = more.quotes ?? [outputOnly];
  return {
    body: Buffer.from(body),
    prompt: { tokens: 7, cached: 0 },
    answer: null,
    hasOutput: true,
    scan: null,
    capNames: [
      "max_tokens",
      "max_completion_tokens",
      "max_output_tokens",
      "generationConfig",
      "generation_config",
    ],
    clientTools: messages.clientTools,
    ways: [],
    ...more,
    quotes,
  };
}

/** The answers of a model before. */
const answering = (output: number, longest = output, isOwn = true) => ({
  output,
  longest,
  seconds: null,
  isOwn,
});

const expectedOf = (asked: ReservedRequest): string | null => forecastCost(asked)?.expected ?? null;

describe("the expected cost", () => {
  test.each([
    ["the cap, where nothing is known", '{"max_tokens":500}', null, "500"],
    ["4,000 tokens, where nothing is known and the cap is larger", '{"max_tokens":128000}', null, "4000"],
    ["4,000 tokens without a cap", "{}", null, "4000"],
    ["the mean of recent responses, where the cap is larger", '{"max_tokens":128000}', 800, "800"],
    ["the cap, where recent responses used more", '{"max_tokens":500}', 800, "500"],
    ["the cap of the responses dialect", '{"max_output_tokens":500}', null, "500"],
    ["the cap of chat", '{"max_completion_tokens":500}', null, "500"],
    ["the larger of two caps", '{"max_tokens":5,"max_completion_tokens":500}', null, "500"],
    ["the cap of the content dialect", '{"generationConfig":{"maxOutputTokens":500}}', null, "500"],
    ["its other spelling", '{"generation_config":{"max_output_tokens":500}}', null, "500"],
    ["a cap with escapes in its name", '{"max_\\u0074okens":500}', null, "500"],
    ["a fraction as the next whole number", '{"max_tokens":1000.5}', null, "1001"],
    ["no cap where it is there twice", '{"max_tokens":1,"max_tokens":128000}', null, "4000"],
    [
      "no cap where it is there twice in the content dialect",
      '{"generationConfig":{"maxOutputTokens":1,"maxOutputTokens":128000}}',
      null,
      "4000",
    ],
    ["no cap that is a text", '{"max_tokens":"1"}', null, "4000"],
    ["no cap that is null", '{"max_tokens":null}', null, "4000"],
    ["no cap of zero or less", '{"max_tokens":-5}', null, "4000"],
    ["each answer of several", '{"max_tokens":500,"n":8}', null, "4000"],
    [
      "each candidate of several",
      '{"generationConfig":{"maxOutputTokens":500,"candidateCount":3}}',
      null,
      "1500",
    ],
    ["recent responses for each of several answers", '{"n":3}', 800, "2400"],
  ] as const)("counts %s", (_, body, mean, usd) => {
    expect(expectedOf(request(body, { answer: mean === null ? null : answering(mean) }))).toBe(usd);
  });

  test.each([
    [0, "100"],
    [60, "46"],
    [100, "10"],
  ])("counts %d tokens that the session has cached at the price of a read", (cached, usd) => {
    const quotes: Quote[] = [({ input = 0, cache_read: read = 0 }) => String((input * 10 + read) / 10)];
    expect(expectedOf(request("{}", { quotes, prompt: { tokens: 100, cached } }))).toBe(usd);
  });

  test.each([
    ['{"max_tokens":1}', ["max_output_tokens"]],
    ['{"generationConfig":{"maxOutputTokens":1}}', ["max_output_tokens"]],
    ['{"max_tokens":1}', ["generationConfig", "generation_config"]],
  ])("ignores a cap of another dialect: %s", (body, capNames) => {
    expect(expectedOf(request(body, { capNames }))).toBe("4000");
    expect(boundCost(request(body, { capNames }))).toHaveProperty("unbounded");
  });

  test("includes the prompt", () => {
    expect(
      expectedOf(request("{}", { quotes: [({ input = 0, output = 0 }) => String(input + output)] })),
    ).toBe("4007");
  });

  test("the expected cost of embeddings is the prompt's", () => {
    const sum: Quote = ({ input = 0, output = 0 }) => String(input + output);
    expect(expectedOf(request("{}", { hasOutput: false, quotes: [sum] }))).toBe("7");
  });

  test("is the dearest of the channels, and none if one has no price", () => {
    expect(expectedOf(request("{}", { quotes: [() => "1", () => "3", () => "2"] }))).toBe("3");
    expect(expectedOf(request("{}", { quotes: [() => "1", () => null] }))).toBe(null);
  });
});

describe("what a request may well cost", () => {
  const KNOWN = answering(300, 600);
  const FEW = answering(20, 50);
  const SIMILAR = answering(20, 50, false);

  test.each([
    ["its cap", '{"max_tokens":20000}', KNOWN, 20_000, 6000],
    ["32,000 tokens of a larger cap", '{"max_tokens":128000}', KNOWN, 32_000, 6000],
    ["32,000 tokens without a cap", "{}", KNOWN, 32_000, 6000],
    [
      "4,000 tokens of a smaller cap, until answers show that it is obeyed",
      '{"max_tokens":500}',
      KNOWN,
      4000,
      500,
    ],
    ["4,000 tokens, however short answers were", '{"max_tokens":20000}', FEW, 20_000, 4000],
    [
      "what the cap says, where only a similar model has answered",
      '{"max_tokens":20000}',
      SIMILAR,
      20_000,
      20_000,
    ],
    ["what the cap says, where nothing is known", '{"max_tokens":20000}', null, 20_000, 20_000],
    ["all of several answers", '{"max_tokens":20000,"n":3}', FEW, 60_000, 12_000],
  ] as const)("is %s", (_, body, answer, unproven, proven) => {
    const { most } = forecastCost(request(body, { answer }))!;
    expect([most(false), most(true)]).toEqual([String(unproven), String(proven)]);
  });

  test("has the prompt as it is expected, and is the prompt's cost for embeddings", () => {
    const quotes: Quote[] = [
      ({ input = 0, cache_read: read = 0, output = 0 }) => String((input * 10 + read) / 10 + output),
    ];
    const prompt = { tokens: 100, cached: 90 };
    expect(forecastCost(request("{}", { quotes, prompt }))?.most(false)).toBe("32019");
    expect(forecastCost(request("{}", { quotes, prompt, hasOutput: false }))?.most(false)).toBe("19");
  });
});

describe("the most that a request can cost", () => {
  test("is its cap, and one token for each byte of the prompt", () => {
    expect(boundCost(request('{"max_tokens":128000}', { answer: answering(5) }))).toBe("128000");
    const body = '{"max_tokens":1,"x":"abc"}';
    expect(boundCost(request(body, { quotes: [inputOnly] }))).toBe(String(body.length + OWN));
  });

  test("counts the dearest kind of input and of output", () => {
    const body = '{"max_tokens":10}';
    const quote: Quote = (usage) => {
      const { input = 0, cache_write_1h: write = 0, output = 0, output_image: image = 0 } = usage;
      return Object.keys(usage).some((kind) => kind === "input_audio")
        ? null
        : String(input + 2 * write + output + 5 * image);
    };
    expect(boundCost(request(body, { quotes: [quote] }))).toBe(String(2 * (body.length + OWN) + 50));
  });

  test("counts the prompt as a cache write for 12 hours, where that is the dearest", () => {
    const body = '{"max_tokens":1}';
    const quote: Quote = ({ input = 0, cache_write: write = 0, cache_write_12h: long = 0 }) =>
      String(input + write + 2 * long);
    expect(boundCost(request(body, { quotes: [quote] }))).toBe(String(2 * (body.length + OWN)));
  });

  test("allows for a picture that is small in bytes", () => {
    const body = '{"max_tokens":1,"media":{"media_type":"image/png","data":"x"}}';
    expect(boundCost(request(body, { quotes: [inputOnly] }))).toBe(String(body.length + OWN + 50_000));
  });

  /** Priority and fast cost twice as much, ultrafast six times; flex half; speed 5; processing in the US a tenth more. */
  const served: Quote = (
    { output = 0 },
    { service_tier: tier = "standard", speed, inference_geo: place },
  ) => {
    const factor = new Map([
      ["standard", 20],
      ["fast", 40],
      ["ultrafast", 120],
      ["flex", 10],
    ]).get(tier);
    if (factor === undefined) return null;
    return String((output * factor * (speed === "fast" ? 5 : 1) * (place === "us" ? 11 : 10)) / 200);
  };
  const ways = [
    "service_tier=fast",
    "service_tier=ultrafast",
    "service_tier=flex",
    "inference_geo=us",
    "speed=fast",
  ];

  test.each([
    ["standard where it says so", '"service_tier":"default","inference_geo":"global"', "1"],
    [
      "standard where it says so to Anthropic",
      '"service_tier":"standard_only","inference_geo":"global"',
      "1",
    ],
    ["no more than standard with flex", '"service_tier":"flex","inference_geo":"global"', "1"],
    ["the tier that it names", '"service_tier":"ultrafast","inference_geo":"global"', "6"],
    ["a tier by its other name", '"service_tier":"priority","inference_geo":"global"', "2"],
    ["the dearest tier where the project decides", '"inference_geo":"global"', "6"],
    ["the dearest tier with auto", '"service_tier":"auto","inference_geo":"global"', "6"],
    ["the dearest tier where a header may decide", '"service_tier":"standard","inference_geo":"global"', "6"],
    ["the dearest tier with null", '"service_tier":null,"inference_geo":"global"', "6"],
    ["the dearest place where the workspace decides", '"service_tier":"default"', "1.1"],
    ["the place that it names", '"service_tier":"default","inference_geo":"us"', "1.1"],
    ["the dearest of both", '"x":1', "6.6"],
    ["no speed that it does not name", '"service_tier":"default","inference_geo":"global"', "1"],
    ["the speed that it names", '"speed":"fast","service_tier":"default","inference_geo":"global"', "5"],
  ])("is %s", (_, fields, usd) => {
    expect(boundCost(request(`{"max_tokens":1,${fields}}`, { quotes: [served], ways }))).toBe(usd);
  });

  test("counts the tiers of each channel", () => {
    const other: Quote = ({ output = 0 }, { service_tier: tier }) =>
      tier === undefined ? String(output) : null;
    expect(boundCost(request('{"max_tokens":1}', { quotes: [other, served, other], ways }))).toBe("6.6");
    expect(boundCost(request('{"max_tokens":1}', { quotes: [other], ways }))).toBe("1");
  });

  test("is not known for a tier without a price", () => {
    expect(boundCost(request('{"max_tokens":1,"service_tier":"scale"}', { quotes: [served], ways }))).toEqual(
      {
        unbounded: "it has no price",
      },
    );
  });

  test.each([
    ["{}", "its output has no cap: set max_tokens"],
    ['{"max_tokens":1,"max_tokens":2}', "no cap"],
    ['{"max_tokens":"1"}', "no cap"],
    ['{"max_tokens":1,"max_output_tokens":null}', "no cap"],
    ['{"max_tokens":1,"previous_response_id":"resp_1"}', '"previous_response_id" cannot be known'],
    ['{"max_tokens":1,"conversation":"conv_1"}', '"conversation" cannot be known'],
    [
      '{"max_tokens":1,"tools":[{"type":"web_search_20250305","name":"web_search"}]}',
      'the tool "web_search_20250305" cannot be known',
    ],
    ['{"max_tokens":1,"tools":[{"googleSearch":{}}]}', "a tool without a type cannot be known"],
    ['{"max_tokens":1,"messages":[{"source":{"type":"url","url":"https://x"}}]}', '"url" cannot be known'],
    ['{"max_tokens":1,"input":[{"file_id":"file-1"}]}', '"file_id" cannot be known'],
    ['{"max_tokens":1,"fallbacks":[{"model":"dearer"}]}', '"fallbacks" cannot be known'],
    ['{"max_tokens":1,"input":[{"type":"item_reference","id":"m"}]}', '"item_reference" cannot be known'],
    ['{"max_tokens":1,"input":[{"role":"user","content":"x"},{"id":"m"}]}', '"id" cannot be known'],
    ['{"max_tokens":1,"input":[{"id":"m", "type":null}]}', '"id" cannot be known'],
    ['{"max_tokens":1,"input":[{"type":null, "id":"m"}]}', '"id" cannot be known'],
    ['{"max_tokens":1,"input":[{"image_\\u0075rl":"https://x"}]}', '"url" cannot be known'],
    ['{"max_tokens":1,"input":[{"image_url":"\\u0068ttps://x"}]}', '"url" cannot be known'],
    ['{"max_tokens":1,"tools":[{"type":"web\\u005Fsearch"}]}', 'the tool "web_search" cannot be known'],
    ['{"max_tokens":1,"tools":[{"type":"x_search"}]}', 'the tool "x_search" cannot be known'],
    ['{"max_tokens":1,"Max_Tokens":9}', "more than one spelling"],
    ['{"max_tokens":1,"max_to\u212aens":9}', "more than one spelling"],
    ['{"max_tokens":1,"max_token\u017f":9}', "more than one spelling"],
    ['{"max_tokens":1,"Previous_Response_ID":"resp_1"}', "more than one spelling"],
    ['{"generationConfig":{"maxOutputTokens":1,"MaxOutputTokens":9}}', "more than one spelling"],
    ['{"generationConfig":{"maxOutputTokens":1,"CandidateCount":9}}', "more than one spelling"],
    ['{"max_tokens":1,"models":["dearer"]}', '"models" cannot be known'],
    ['{"max_tokens":1,"web_search_options":{}}', '"web_search_options" cannot be known'],
    ['{"max_tokens":1,"search_parameters":{"mode":"auto"}}', '"search_parameters" cannot be known'],
    ['{"max_tokens":1,"n":"8"}', "the number of its answers"],
    ['{"max_tokens":1,"n":1001}', "the number of its answers"],
    ['{"max_tokens":1,"n":[8]}', "the number of its answers"],
    ['{"generationConfig":{"maxOutputTokens":1,"candidateCount":"8"}}', "the number of its answers"],
    ['{"max_tokens":1,"best_of":8}', '"best_of" cannot be known'],
    ['{"max_tokens":1,"prediction":{"type":"content","content":"x"}}', '"prediction" cannot be known'],
    ['{"max_tokens":1,"preset":"team"}', '"preset" cannot be known'],
    ['{"max_tokens":1,"extra_body":{"google":{"cached_content":"x"}}}', '"extra_body" cannot be known'],
    ['{"max_tokens":1,"messages":[{"audio":{"expires_at":1,"id":"audio_1"}}]}', '"audio" cannot be known'],
    ['{"max_tokens":1,"messages":[{"document_url":"https://x"}]}', '"url" cannot be known'],
    ['{"max_tokens":1,"messages":[{"image_url":{"url":"HTTPS:\\/\\/x"}}]}', '"url" cannot be known'],
    ['{"max_tokens":1,"messages":[{"image_url":{"url":" gs://x"}}]}', '"url" cannot be known'],
    ['{"max_tokens":1,"messages":[{"file":{"file_data":"https://x"}}]}', '"url" cannot be known'],
    ['{"max_tokens":1,"messages":[{"input_audio":{"data":"https://x"}}]}', '"url" cannot be known'],
    [
      '{"max_tokens":1,"messages":[{"type":"video","video":["data:x","https://x"]}]}',
      '"video" cannot be known',
    ],
    [
      '{"max_tokens":1,"messages":[{"source":{"media_type":"application/pdf","data":"x"}}]}',
      '"application/pdf" cannot be known',
    ],
    ['{"max_tokens":1,"contents":[{"inlineData":{"mimeType":"video/mp4"}}]}', '"video/mp4" cannot be known'],
    [
      '{"max_tokens":1,"input":[{"file_data":"data:application/pdf;base64,AA"}]}',
      '"application/pdf" cannot be known',
    ],
    ['{"max_tokens":1,"input":[{"file_data":"AA"}]}', '"file_data" cannot be known'],
    [
      '{"max_tokens":1,"input":[{"type":"input_audio","input_audio":{"data":"AA","format":"mp3"}}]}',
      '"input_audio" cannot be known',
    ],
    ['{"max_tokens":1,"input":[{"File_ID":"file-1"}]}', '"File_ID" cannot be known'],
    [
      '{"max_tokens":1,"input":[{"type":"image_generation_call","id":"ig_1"}]}',
      '"image_generation_call" cannot be known',
    ],
    [
      '{"max_tokens":1,"input":[{"type":"reasoning","id":"rs_1","summary":[],"content":[ ]}]}',
      'a reasoning item without "encrypted_content" cannot be known',
    ],
    [
      '{"max_tokens":1,"input":[{"type":"x","type":"reasoning","id":"rs_1","summary":[]}]}',
      "more than one spelling cannot be known",
    ],
    ['{"max_tokens":1,"enable_search":true}', '"enable_search" cannot be known'],
    [
      '{"max_tokens":1,"tools":[{"type":"advisor_20260301","name":"x"}]}',
      'the tool "advisor_20260301" cannot',
    ],
    [
      '{"max_tokens":1,"tools":[{"type":"shell","environment":{"type":"container_auto"}}]}',
      'the tool "shell" cannot be known',
    ],
    [
      '{"max_tokens":1,"context_management":{"edits":[{"type":"compact_20260112"}]}}',
      '"context_management" cannot be known',
    ],
  ])("is not known for %s", (body, why) => {
    const bound = boundCost(request(body));
    expect(typeof bound === "string" ? bound : bound.unbounded).toContain(why);
  });

  test("is not known where nothing caps the output", () => {
    expect(boundCost(request('{"max_tokens":1}', { capNames: [] }))).toEqual({
      unbounded: "its output has no cap, and this endpoint accepts none",
    });
  });

  test.each([
    ["one answer", '"n":1'],
    ["no number of answers", '"n":null'],
    ["pictures in the body", '"messages":[{"image_url":{"url":"data:image/png;base64,AA"}}]'],
    ["a text that begins like a data URL", '"messages":[{"content":"data: x; y, z"}]'],
    ["a text as a document", '"messages":[{"source":{"type":"text","media_type":"text/plain","data":"x"}}]'],
    [
      "a form of its answer",
      '"generationConfig":{"maxOutputTokens":1,"responseMimeType":"application/json"}',
    ],
    ["a setting of its voice", '"audio":{"format":"wav","voice":"alloy"},"modalities":["text","audio"]'],
    ["a text that begins with an address", '"messages":[{"content":[{"type":"text","text":"https://x"}]}]'],
    ["encrypted thoughts", '"input":[{"type":"reasoning","id":"rs_1","encrypted_content":"x","content":[]}]'],
    ["thoughts in the body", '"input":[{"type":"reasoning","id":"rs_1","content":[{"text":"x"}]}]'],
  ])("is known with %s", (_, members) => {
    expect(boundCost(request(`{"max_tokens":1,${members}}`))).toBe("1");
  });

  test.each([
    [messages, "max_tokens"],
    [responses, "max_output_tokens"],
    [chat, "max_tokens or max_completion_tokens"],
    [content, "generationConfig.maxOutputTokens"],
  ])("names the caps of the request's dialect, and no others", ({ capNames }, caps) => {
    expect(boundCost(request("{}", { capNames }))).toEqual({
      unbounded: `its output has no cap: set ${caps}`,
    });
  });

  test("has no provider's prompt for embeddings", () => {
    const body = '{"input":"x"}';
    expect(boundCost(request(body, { quotes: [inputOnly], hasOutput: false }))).toBe(String(body.length));
  });

  test("allows for the text that providers add to a request with tools", () => {
    const body = '{"max_tokens":1,"tools":[{"type":"computer_20251124","name":"computer"}]}';
    expect(boundCost(request(body, { quotes: [inputOnly] }))).toBe(String(body.length + 5000));
    const item = '{"type":"additional_tools","tools":[{"type":"custom","name":"x"}]}';
    const added = `{"max_output_tokens":1,"input":[${item}]}`;
    const { capNames, clientTools } = responses;
    expect(boundCost(request(added, { quotes: [inputOnly], capNames, clientTools }))).toBe(
      String(added.length + 5000),
    );
  });

  test.each([
    ["the URL in a call", '{"type":"tool_use","name":"open","input":{"tab":1,"url":"https://x"}}'],
    ["the file in a call", '{"type":"tool_use","name":"read","input":{"deep":{"file_id":"x"}}}'],
    ["escapes in a call", '{"ty\\u0070e":"tool_use","input":{"file\\u005fid":"x"}}'],
    ["the URL in a call of Gemini's", '{"functionCall":{"name":"open","args":{"tab":1,"url":"https://x"}}}'],
    ["the URL in a result of Gemini's", '{"function_response":{"name":"x","response":{"url":"https://x"}}}'],
    ["a reference to a tool", '{"type":"tool_addition","tool":{"type":"tool_reference","name":"x"}}'],
    [
      "a tool of the client that a conversation adds",
      '{"type":"tool_addition","tool":{"type":"tool_definition","definition":{"name":"x","input_schema":{}}}}',
    ],
  ])("is known with %s", (_, part) => {
    expect(boundCost(request(`{"max_tokens":1,"messages":[{"role":"x","content":[${part}]}]}`))).toBe("1");
    expect(boundCost(request(`{"max_tokens":1,"contents":[{"role":"x","parts":[${part}]}]}`))).toBe("1");
    expect(boundCost(request(`{"max_tokens":1,"input":[${part}]}`))).toBe("1");
  });

  test.each([
    ["content next to a call", '{"type":"tool_use","input":{},"source":{"url":"https://x"}}', '"url"'],
    ["content that is no call", '{"type":"image","input":{"url":"https://x"}}', '"url"'],
    ["two inputs", '{"type":"tool_use","input":{"url":"https://x"},"input":{}}', '"url"'],
    ["a call in two spellings", '{"type":"tool_use","Type":"image","input":{"url":"https://x"}}', '"url"'],
    ["a file next to Gemini's call", '{"functionCall":{"args":{}},"fileData":{"fileUri":"x"}}', '"fileUri"'],
    ["a file in Gemini's call", '{"functionCall":{"args":{},"parts":[{"fileUri":"x"}]}}', '"fileUri"'],
    [
      "a hosted tool that a conversation adds",
      '{"type":"tool_addition","tool":{"type":"tool_definition","definition":{"type":"web_search_20270101"}}}',
      'the tool "web_search_20270101"',
    ],
    [
      "a hosted tool after a compaction",
      '{"type":"compaction","tool_changes":[{"tool":{"type":"tool_definition","definition":{"type":"x"}}}]}',
      '"tool_definition"',
    ],
  ])("is not known with %s", (_, part, why) => {
    const body = `{"max_tokens":1,"messages":[{"role":"x","content":[${part}]}]}`;
    expect(boundCost(request(body))).toEqual({
      unbounded: `the cost of ${why} cannot be known in advance: leave it out`,
    });
  });

  test("reads nothing into a conversation that is no JSON, and its tools all the same", () => {
    const call = '{"content":[{"type":"tool_use","input":{"url":"https://x"}}]}';
    const broken = '{"max_tokens":1,"messages":[1 2],"tools":[{"type":"x_search"}]}';
    expect(boundCost(request(`{"max_tokens":1,"messages":[1 2,${call}]}`))).toHaveProperty("unbounded");
    expect(boundCost(request(broken))).toHaveProperty("unbounded", expect.stringContaining('"x_search"'));
  });

  test("is known for tools of the client, and for a text that speaks of URLs", () => {
    const body = JSON.stringify({
      max_tokens: 1,
      tools: [
        { name: "web_search", input_schema: {} },
        { type: "custom", name: "x" },
        { name: "read", input_schema: { properties: { file_id: { type: "string" }, url: {} } } },
      ],
      messages: [
        { role: "user", content: 'print {"url":"https://x"} and {"file_id":1}' },
        { role: "user", content: '\u001b[{"id":"x"}] "type":"item_reference" \\u0022url":"https://x' },
        { role: "assistant", content: [{ type: "tool_use", id: "t", input: { url: "https://x" } }] },
        { role: "assistant", parts: [{ functionCall: { args: { url: "https://x" } } }] },
        { role: "assistant", parts: [{ functionCall: { args: { id: "x" } } }] },
      ],
      context_management: { edits: [{ type: "clear_thinking_20251015" }] },
      previous_response_id: null,
    });
    expect(boundCost(request(body))).toBe("1");
  });
});
