// Converts requests and answers as the gateway does, and reads what comes out.

import type { Meter, Usage } from "../../src/billing/usage.ts";
import { sumUsage } from "../../src/billing/usage.ts";
import type { AnswerOutput, AnswerStream } from "../../src/bridges/answer-stream.ts";
import { type Conversion, convertCall, type ConvertedCall } from "../../src/bridges/convert.ts";
import type { Quirks } from "../../src/bridges/neutral/conversation.ts";
import { findQuirks } from "../../src/bridges/chat/quirks.ts";
import { DIALECT_NAMES, type DialectName } from "../../src/dialects/dialect.ts";
import { GatewayError } from "../../src/lib/errors.ts";
import { runAtOnce, type Steps } from "../../src/lib/time/next-turn.ts";
import { DIALECTS } from "../../src/dialects/endpoints.ts";

// oxlint-disable-next-line typescript/no-explicit-any -- tests look into bodies of every shape
export type Any = any;

export interface Setting {
  readonly model?: string;
  readonly stream?: boolean;
  readonly quirks?: Partial<Quirks>;
  readonly secret?: string;
  readonly session?: string | null;
  readonly isCodex?: boolean;
}

export const HI = { role: "user", content: "Hi" };
/** The smallest request of each client. */
export const BASES: Any = {
  messages: { max_tokens: 1000, messages: [HI] },
  responses: { input: "Hi" },
  chat: { messages: [HI] },
  content: { contents: [{ role: "user", parts: [{ text: "Hi" }] }] },
};

/** Models whose names say that they think. */
const MODELS: Readonly<Record<DialectName, string>> = {
  messages: "claude-opus-4-8",
  responses: "gpt-5.6",
  chat: "qwen3-coder",
  content: "gemini-3.5-pro",
};

export interface Converted {
  readonly body: Any;
  readonly text: string;
  readonly path: string;
  readonly conversion: Conversion;
  readonly upstream: DialectName;
}

export const slicesOf = ({ texts }: AnswerOutput): string[] =>
  typeof texts === "string" ? [texts] : [...texts];
export const textOf = (output: AnswerOutput): string => slicesOf(output).join("");

/** Converts a request at once. `direction` is `client>upstream`. */
export function convert(direction: string, body: Any, setting: Setting = {}): Converted {
  const call = runAtOnce(openCall(direction, body, setting));
  const text = Buffer.from(call.body).toString();
  return {
    body: JSON.parse(text),
    text,
    path: call.path,
    conversion: call.conversion,
    upstream: readDirection(direction)[1],
  };
}

/** Converts a request step by step. */
export function openCall(direction: string, body: Any, setting: Setting = {}): Steps<ConvertedCall> {
  const [client, dialect] = readDirection(direction);
  const {
    model = MODELS[dialect],
    stream = body.stream === true,
    quirks,
    secret = "s",
    session = null,
  } = setting;
  return convertCall({
    client,
    model: "asked",
    stream,
    body: Buffer.from(typeof body === "string" ? body : JSON.stringify(body)),
    to: { dialect, model, session, quirks: findQuirks("x", quirks) },
    stamp: { id: "req_1", time: 1_700_000_000_000 },
    secret: () => secret,
    isCodex: setting.isCodex ?? false,
  });
}

/** All directions, `client>upstream`. Each goes through the neutral form. */
export const DIRECTIONS = DIALECT_NAMES.flatMap((client) =>
  DIALECT_NAMES.filter((upstream) => upstream !== client).map((upstream) => `${client}>${upstream}`),
);

export function readDirection(direction: string): [client: DialectName, upstream: DialectName] {
  const [client, upstream] = direction.split(">").map((name) => DIALECT_NAMES.find((each) => each === name));
  if (client === undefined || upstream === undefined) throw new Error(`no direction: ${direction}`);
  return [client, upstream];
}

/** Returns the status of the refusal and the field that it names, or "accepted". */
export function refusal(direction: string, body: Any, setting: Setting = {}): string {
  try {
    convert(direction, body, setting);
  } catch (error) {
    if (!(error instanceof GatewayError)) throw error;
    return `${error.status} ${error.param}`;
  }
  return "accepted";
}

export interface Streamed {
  readonly text: string;
  readonly phase: string;
  readonly refusal: { readonly status: number; readonly body: string } | null;
  /** The data of the events in `text`. */
  readonly events: Any[];
  readonly usage: Usage;
  readonly estimate: number;
}

function openMeter({ between }: Conversion): Meter {
  return DIALECTS[between.upstream].openMeter("text/event-stream");
}

export function openStream(conversion: Conversion): AnswerStream {
  return conversion.openStream(openMeter(conversion), () => ({}));
}

/** Converts a stream of the upstream's bytes while the upstream's meter reads it. `cut`: the connection breaks at the end. */
export function stream(
  { conversion }: Pick<Converted, "conversion">,
  chunks: readonly (string | Uint8Array)[],
  cut = false,
): Streamed {
  const meter = openMeter(conversion);
  const usage = (): Usage => sumUsage(meter.read().parts);
  const open = conversion.openStream(meter, usage);
  let text = "";
  for (const chunk of chunks) {
    const bytes = typeof chunk === "string" ? Buffer.from(chunk) : chunk;
    text += textOf(open.push(bytes));
  }
  const last = cut ? open.end({ status: 502, message: "cut" }) : open.end();
  text += textOf(last);
  const { phase, refusal } = last;
  const { estimatedOutput: estimate } = meter.read();
  return { text, phase, refusal, events: readEvents(text), usage: usage(), estimate };
}

export function whole(
  { conversion, upstream }: Converted,
  body: Any,
): { status: number; body: Any; usage: Usage } {
  const bytes = Buffer.from(typeof body === "string" ? body : JSON.stringify(body));
  const meter = DIALECTS[upstream].openMeter(
    typeof body === "string" ? "text/event-stream" : "application/json",
  );
  meter.see(bytes);
  const usage = (): Usage => sumUsage(meter.read().parts);
  const answer = conversion.convertReply(bytes, usage);
  return { status: answer.status, body: JSON.parse(answer.body), usage: usage() };
}

export function readEvents(text: string): Any[] {
  // A regular expression is no help here: its `$` and `.` know more line ends than an event stream has.
  const lines = text.split("\n").filter((line) => line.startsWith("data: "));
  return lines.map((line) => (line === "data: [DONE]" ? "[DONE]" : JSON.parse(line.slice("data: ".length))));
}

/** Writes events as the wire has them. The type of an event becomes its name. */
export function sse(events: readonly Any[]): string {
  return events
    .map((event) => {
      if (typeof event === "string") return `data: ${event}\n\n`;
      const name = typeof event.type === "string" ? `event: ${event.type}\n` : "";
      return `${name}data: ${JSON.stringify(event)}\n\n`;
    })
    .join("");
}
