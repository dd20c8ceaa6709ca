// The Responses objects that the bridge understands, read leniently: relays leave
// things out, and what is absent or of another type reads as empty. The deltas,
// which are most of a stream, are read by hand in stream.ts.

import { z } from "zod";

const text = z.string().catch("");
const count = z.number().catch(0);

const Logprob = z.looseObject({
  token: text,
  logprob: count,
  bytes: z.array(z.number()).nullable().catch(null),
});

export const Logprobs = z
  .array(z.looseObject({ ...Logprob.shape, top_logprobs: z.array(Logprob).catch([]) }))
  .catch([]);

const Annotation = z.looseObject({
  type: text,
  start_index: count,
  end_index: count,
  title: text,
  url: text,
});

const Part = z.looseObject({
  type: text,
  text,
  refusal: text,
  annotations: z.array(Annotation).catch([]),
  logprobs: Logprobs,
});

export const Item = z.looseObject({
  type: text,
  id: text,
  call_id: text,
  name: text,
  arguments: text,
  input: text,
  phase: text,
  content: z.array(Part).catch([]),
  summary: z.array(Part).catch([]),
});

export type Item = z.infer<typeof Item>;

const Usage = z.looseObject({
  input_tokens: count,
  output_tokens: count,
  total_tokens: z.number().nullable().catch(null),
  input_tokens_details: z
    .looseObject({ cached_tokens: count, cache_write_tokens: z.number().nullable().catch(null) })
    .catch({ cached_tokens: 0, cache_write_tokens: null }),
  output_tokens_details: z.looseObject({ reasoning_tokens: count }).catch({ reasoning_tokens: 0 }),
});

export type Usage = z.infer<typeof Usage>;

export const Failure = z.looseObject({
  code: z.string().nullable().catch(null),
  message: text,
  type: text,
  param: z.string().nullable().catch(null),
});

export type Failure = z.infer<typeof Failure>;

const Verdict = z.looseObject({ type: text }).nullable().catch(null);
const Moderation = z.looseObject({ input: Verdict, output: Verdict }).nullable().catch(null);

export type Moderation = z.infer<typeof Moderation>;

export const Reply = z.looseObject({
  id: text,
  created_at: count,
  model: text,
  status: text,
  output: z.array(Item).catch([]),
  usage: Usage.nullable().catch(null),
  service_tier: z.string().nullable().catch(null),
  error: Failure.nullable().catch(null),
  incomplete_details: z.looseObject({ reason: text }).nullable().catch(null),
  metadata: z.record(z.string(), z.string()).nullable().catch(null),
  moderation: Moderation,
});

export type Reply = z.infer<typeof Reply>;
