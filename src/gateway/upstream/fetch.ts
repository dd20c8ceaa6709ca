// The gateway's own small requests: the whole response as a promise.

import { readUpTo, type Upstream, type UpstreamRequest } from "../../lib/http/upstream.ts";
import { decodeAnswer } from "./decode.ts";

/** Rejects with UpstreamFault. Of a body that is longer than `maxBytes`, the end is missing. */
export async function fetchWhole(client: Upstream, request: UpstreamRequest, maxBytes: number) {
  const sent = client.send(request);
  try {
    const answer = decodeAnswer(await sent.answer);
    return { response: answer.head, body: await readUpTo(answer, maxBytes) };
  } catch (error) {
    sent.cancel();
    throw error;
  }
}
