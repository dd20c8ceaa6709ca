// The gateway's own small requests: the whole response as a promise.

import { readUpTo, type Upstream, type UpstreamRequest } from "../../lib/http/upstream.ts";
import { decodeAnswer } from "./decode.ts";

/** Rejects with UpstreamFault. `isCut`: the body is longer than `maxBytes`, and its end is missing. */
export async function fetchWhole(client: Upstream, request: UpstreamRequest, maxBytes: number) {
  const sent = client.send(request);
  try {
    const answer = decodeAnswer(await sent.answer);
    const { bytes, isCut } = await readUpTo(answer, maxBytes);
    return { response: answer.head, body: bytes, isCut };
  } catch (error) {
    sent.cancel();
    throw error;
  }
}
