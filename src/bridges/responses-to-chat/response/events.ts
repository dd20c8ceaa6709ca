// The Responses objects that the bridge reads, leniently: relays leave fields out, and a field that is absent or of
// another type reads as empty. Deltas, which are most of a stream, are read by hand in deltas.ts.

import { z } from "zod";

const text = z.string().catch("");
const count = z.number().catch(0);

const Logprob = z.lazy(() =>
  z.looseObject({ token: text, logprob: count, bytes: z.array(z.number()).nullable().catch(null) }),
);

export const Logprobs = z.lazy(() =>
  z.array(z.looseObject({ ...Logprob.unwrap().shape, top_logprobs: z.array(Logprob).catch([]) })).catch([]),
);

const Annotation = z.lazy(() =>
  z.looseObject({ type: text, start_index: count, end_index: count, title: text, url: text }),
);

const Part = z.lazy(() =>
  z.looseObject({
    type: text,
    text,
    refusal: text,
    annotations: z.array(Annotation).catch([]),
    logprobs: Logprobs,
  }),
);

export const OutputItem = z.lazy(() =>
  z.looseObject({
    type: text,
    id: text,
    call_id: text,
    name: text,
    arguments: text,
    input: text,
    phase: text,
    content: z.array(Part).catch([]),
    summary: z.array(Part).catch([]),
  }),
);

export type OutputItem = z.infer<typeof OutputItem>;

const ReplyUsage = z.lazy(() =>
  z.looseObject({
    input_tokens: count,
    output_tokens: count,
    total_tokens: z.number().nullable().catch(null),
    input_tokens_details: z
      .looseObject({ cached_tokens: count, cache_write_tokens: z.number().nullable().catch(null) })
      .catch({ cached_tokens: 0, cache_write_tokens: null }),
    output_tokens_details: z.looseObject({ reasoning_tokens: count }).catch({ reasoning_tokens: 0 }),
  }),
);

export type ReplyUsage = z.infer<typeof ReplyUsage>;

export const ReplyError = z.lazy(() =>
  z.looseObject({
    code: z.string().nullable().catch(null),
    message: text,
    type: text,
    param: z.string().nullable().catch(null),
  }),
);

export type ReplyError = z.infer<typeof ReplyError>;

const Verdict = z.lazy(() => z.looseObject({ type: text }).nullable().catch(null));
const Moderation = z.lazy(() => z.looseObject({ input: Verdict, output: Verdict }).nullable().catch(null));

export type Moderation = z.infer<typeof Moderation>;

export const Reply = z.lazy(() =>
  z.looseObject({
    id: text,
    created_at: count,
    model: text,
    status: text,
    output: z.array(OutputItem).catch([]),
    usage: ReplyUsage.nullable().catch(null),
    service_tier: z.string().nullable().catch(null),
    error: ReplyError.nullable().catch(null),
    incomplete_details: z.looseObject({ reason: text }).nullable().catch(null),
    metadata: z.record(z.string(), z.string()).nullable().catch(null),
    moderation: Moderation,
  }),
);

export type Reply = z.infer<typeof Reply>;
