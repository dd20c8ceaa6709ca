// The gateway's own small requests.

import { readUpTo, type Upstream, type UpstreamRequest } from "../../lib/http/upstream.ts";
import { decodeAnswer } from "./decode.ts";

/** Ends an answer that trickles in. A limit for pauses would not. */
const MAX_WAIT_MS = 30_000;

export const endOfWait = () => performance.now() + MAX_WAIT_MS;

export async function fetchWhole(
  client: Pick<Upstream, "send">,
  request: UpstreamRequest,
  maxBytes: number,
  until = endOfWait(),
) {
  const sent = client.send(request);
  const timer = setTimeout(() => sent.cancel(), until - performance.now());
  try {
    const answer = decodeAnswer(await sent.answer);
    return { response: answer.head, body: await readUpTo(answer, maxBytes) };
  } catch (error) {
    sent.cancel();
    throw error;
  } finally {
    clearTimeout(timer);
  }
}
