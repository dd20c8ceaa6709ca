// A converted stream whose bytes are read as text.

import type { BridgeContext } from "../../../src/bridges/responses-to-chat/context.ts";
import type { Refusal } from "../../../src/bridges/responses-to-chat/errors.ts";
import { type Emitted, openChatStream } from "../../../src/bridges/responses-to-chat/stream.ts";

export interface Told extends Omit<Emitted, "bytes" | "plain"> {
  readonly text: string;
}

export interface ChatTeller {
  push(chunk: Uint8Array): Told;
  end(fault?: Refusal): Told;
}

export function openChatTeller(context: BridgeContext): ChatTeller {
  const stream = openChatStream(context);
  return {
    push: (chunk) => read(stream.push(chunk)),
    end: (fault) => read(stream.end(fault)),
  };
}

function read({ bytes, phase, refusal }: Emitted): Told {
  return { phase, refusal, text: new TextDecoder("utf-8", { fatal: true }).decode(bytes) };
}
