// One recorded exchange: a line of `exchanges.jsonl`. Its bodies are lists of pieces in the folder next to the file.

import { z } from "zod";
import { parseJson } from "../lib/json/json.ts";

const count = z.int().nonnegative();
const amount = z.string().regex(/^\d+(\.\d+)?$/);
const fields = z.array(z.tuple([z.string(), z.string()]).readonly()).readonly();
/** The hashes of its pieces, in their order. They name files, so nothing else is one. */
const body = z.array(z.string().regex(/^[0-9a-f]{64}$/)).readonly();

const exchangeSchema = z.lazy(() =>
  z.object({
    v: z.literal(1),
    id: z.string(),
    time: z.iso.datetime(),
    key: z.string(),
    transport: z.literal("websocket").optional(),
    request: z.object({ method: z.string(), target: z.string(), fields, body }),
    response: z.object({
      status: z.int().min(200).max(599),
      fields,
      body,
      /** When each chunk came, in milliseconds since the request, and how many bytes it has. Of a WebSocket: each message. */
      chunks: z.array(z.tuple([count, z.int().positive()]).readonly()).readonly(),
      /** `reset`: the connection was broken, so that nobody takes the answer for a whole one. `left`: the client left. */
      end: z.enum(["whole", "reset", "left"]),
    }),
    duration_ms: count,
    /** What the ledger has of it; null: it was not billed. */
    line: z.looseObject({ charge_usd: amount.nullish() }).nullable(),
  }),
);

export type RecordedExchange = Readonly<z.infer<typeof exchangeSchema>>;

/** Null for a line that a kill has cut, or that somebody else wrote. */
export function readExchange(text: string): RecordedExchange | null {
  return exchangeSchema.safeParse(parseJson(text)).data ?? null;
}
