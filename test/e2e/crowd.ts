// Load for a gateway that will be killed: clients of every dialect at once, each
// request with its own model name, so that what the upstream got, what the
// client got and what the ledger says can be compared.

import type { DemoUpstream, ReceivedRequest } from "../../src/demo/upstream.ts";
import type { FaultName } from "../../src/demo/faults.ts";
import { keyOf, type Platform } from "../harness/gateway.ts";
import { openRaw, parseAnswer, type RequestLines, writeRequest } from "../harness/raw.ts";

/** Numbers from 0 to 1, the same in every run. */
export type Dice = () => number;

export function openDice(seed: number): Dice {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
}

/** What a client knows of its request. */
export interface Sent {
  readonly model: string;
  readonly platform: Platform;
  /** `x-request-id`, if that much of the answer arrived. */
  id: string | null;
  /** The answer is complete by its framing. */
  whole: boolean;
}

/** A dated snapshot costs what its model costs: a million names with a price. */
const MODELS = { messages: "claude-haiku-4-5", responses: "gpt-5.4", content: "gemini-2.5-pro" } as const;

const USER = [{ role: "user", content: "Hello" }];
const CONTENTS = { contents: [{ role: "user", parts: [{ text: "Hello" }] }] };

interface Kind {
  readonly platform: Platform;
  readonly base: string;
  ask(model: string, stream: boolean): { target: string; body: object };
}

function askContent(prefix: string): Kind["ask"] {
  return (model, stream) => ({
    target: `${prefix}/v1beta/models/${model}:${stream ? "streamGenerateContent?alt=sse" : "generateContent"}`,
    body: CONTENTS,
  });
}

function askMessages(prefix: string): Kind["ask"] {
  return (model, stream) => ({
    target: `${prefix}/v1/messages`,
    body: { model, max_tokens: 50, messages: USER, stream },
  });
}

const KINDS: readonly Kind[] = [
  { platform: "messages", base: MODELS.messages, ask: askMessages("") },
  { platform: "content", base: MODELS.content, ask: askContent("") },
  { platform: "relay", base: MODELS.messages, ask: askMessages("/relay") },
  { platform: "relay", base: MODELS.content, ask: askContent("/relay") },
  {
    platform: "responses",
    base: MODELS.responses,
    ask: (model, stream) => ({ target: "/v1/responses", body: { model, input: "Hello", stream } }),
  },
  {
    platform: "responses",
    base: MODELS.responses,
    ask: (model, stream) => ({ target: "/v1/chat/completions", body: { model, messages: USER, stream } }),
  },
];

const FAULTS: readonly FaultName[] = ["reset-mid-stream", "error-event", "status-422", "reset-before-head"];

/** The model name in the upstream request. */
export function readModel({ target, json }: ReceivedRequest): string {
  const [, inPath] = /\/models\/([^:]+):/.exec(target) ?? [];
  if (inPath !== undefined) return inPath;
  return typeof json === "object" && json !== null && "model" in json ? String(json.model) : "";
}

export class Crowd {
  readonly sent: Sent[] = [];
  readonly #upstream: DemoUpstream;
  readonly #roll: Dice;
  /** Answers whose head has arrived. */
  #heads = 0;
  #waiting: (() => void)[] = [];
  #over = false;

  constructor(upstream: DemoUpstream, roll: Dice) {
    this.#upstream = upstream;
    this.#roll = roll;
  }

  /** This many clients send requests, one after another, until `stop`. Resolves when the last one has ended. */
  async run(port: number, clients: number): Promise<void> {
    this.#over = false;
    await Promise.all(
      Array.from({ length: clients }, async () => {
        while (!this.#over) await this.#ask(port);
      }),
    );
  }

  stop(): void {
    this.#over = true;
  }

  /** Resolves when this many more answers have begun. */
  async answered(count: number): Promise<void> {
    const goal = this.#heads + count;
    while (this.#heads < goal) await new Promise<void>((resolve) => this.#waiting.push(resolve));
  }

  async #ask(port: number): Promise<void> {
    const roll = this.#roll;
    const kind = KINDS[Math.floor(roll() * KINDS.length)]!;
    const model = `${kind.base}-20${String(this.sent.length).padStart(6, "0")}`;
    const sent: Sent = { model, platform: kind.platform, id: null, whole: false };
    this.sent.push(sent);
    const stream = roll() < 0.6;
    const fault = roll() < 0.1 ? FAULTS[Math.floor(roll() * FAULTS.length)] : undefined;
    this.#upstream.next({
      when: (received) => readModel(received) === model,
      words: 1 + Math.floor(roll() * 10),
      ...(roll() < 0.5 ? { paceMs: 2 } : {}),
      ...(fault === undefined ? {} : { fault }),
    });
    const fields = { authorization: `Bearer ${keyOf(kind.platform)}` };
    const leaves = stream && roll() < 0.2;
    await this.#converse(port, { ...kind.ask(model, stream), fields }, sent, leaves);
  }

  async #converse(port: number, lines: RequestLines, sent: Sent, leaves: boolean): Promise<void> {
    const client = await openRaw(port).catch(() => null);
    if (client === null) return;
    client.send(writeRequest(lines));
    await client
      .until((bytes) => {
        const answer = parseAnswer(bytes);
        if (answer === null) return false;
        if (sent.id === null) this.#note(sent, answer.field("x-request-id") ?? "");
        sent.whole = answer.complete;
        return answer.complete || leaves;
      })
      .catch(() => null);
    client.close();
  }

  #note(sent: Sent, id: string): void {
    sent.id = id;
    this.#heads += 1;
    for (const wake of this.#waiting.splice(0)) wake();
  }
}
