// Checks converted requests and answers by the schemas that OpenAI publishes.

import { describe, expect, test } from "bun:test";
import type { DialectName } from "../../src/dialects/dialect.ts";
import { type Any, convert, sse, stream, whole } from "./calls.ts";
import { findFaults, listFields, schemasAbsent } from "./chat-on-responses/schemas.ts";
import { formAnswer, joinAnswer } from "./provider.ts";
import { formRequest, formUser, keepAnswer, type ModelTurn, type UserTurn } from "./session.ts";

const COUNTS = { prompt: 10, read: 4, output: 6, reasoning: 2 };
const CALL = { id: "call_1", name: "Read", args: { path: "x" } };
const TURNS: [UserTurn, ModelTurn][] = [
  [
    { results: [], text: "Hello", image: true },
    { thought: "hm", text: "I look.", calls: [CALL, { ...CALL, id: "call_2" }] },
  ],
  [
    { results: ["one", "two"], text: "And?", image: false },
    { thought: null, text: "Done.", calls: [] },
  ],
];

/** Returns the last request of a session, and the answers that the client gets to it. */
function play(client: DialectName, upstream: DialectName): { body: Any; events: Any[]; answer: Any } {
  const history: Any[] = [];
  let played: { body: Any; events: Any[]; answer: Any } = { body: null, events: [], answer: null };
  let calls: ModelTurn["calls"] = [];
  for (const [user, model] of TURNS) {
    history.push(...formUser(client, user, calls));
    const converted = convert(`${client}>${upstream}`, formRequest(client, history, true), OPENAI);
    const sent = formAnswer(upstream, model, COUNTS);
    const { events } = stream(converted, [sse(sent)]);
    history.push(...keepAnswer(client, events));
    played = { body: converted.body, events, answer: whole(converted, joinAnswer(upstream, sent)).body };
    calls = model.calls;
  }
  return played;
}

const OPENAI = {
  quirks: { cap: "max_completion_tokens", reasoning: "effort", cache_key: true },
  session: "s",
} as const;

/** Removes what chat servers have added for thoughts, because OpenAI's schema has no place for it. */
function dropThoughts(value: Any): Any {
  return JSON.parse(JSON.stringify(value), (name, each) =>
    /^reasoning_(content|details)$/.test(name) ? undefined : each,
  );
}

describe.skipIf(schemasAbsent)("converted requests and answers fit OpenAI's schemas", () => {
  test.each<DialectName>(["messages", "content"])("a %s client's request fits OpenAI's schema", (client) => {
    const { body } = play(client, "responses");
    expect(findFaults("CreateResponse", body)).toEqual([]);
    expect(Object.keys(body).filter((field) => !listFields("CreateResponse").includes(field))).toEqual([]);
  });

  test.each<DialectName>(["messages", "responses", "content"])(
    "a %s client's request, converted to chat, fits OpenAI's schema",
    (client) => {
      expect(findFaults("CreateChatCompletionRequest", dropThoughts(play(client, "chat").body))).toEqual([]);
    },
  );

  test.each<DialectName>(["messages", "chat", "content"])(
    "a responses client gets events of a %s upstream that fit OpenAI's schema",
    (upstream) => {
      const { events, answer } = play("responses", upstream);
      for (const event of events)
        expect([event.type, findFaults("ResponseStreamEvent", event)]).toEqual([event.type, []]);
      expect(findFaults("Response", answer)).toEqual([]);
    },
  );

  test.each<DialectName>(["messages", "content"])(
    "a chat client gets chunks of a %s upstream that fit OpenAI's schema",
    (upstream) => {
      const { events, answer } = play("chat", upstream);
      for (const chunk of events.filter((event) => event !== "[DONE]"))
        expect(findFaults("CreateChatCompletionStreamResponse", dropThoughts(chunk))).toEqual([]);
      expect(findFaults("CreateChatCompletionResponse", dropThoughts(answer))).toEqual([]);
    },
  );
});
