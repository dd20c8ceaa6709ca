// The gateway's own small requests.

import { readUpTo, type Upstream, type UpstreamRequest } from "../../lib/http/upstream.ts";
import { decodeAnswer } from "./decode.ts";

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
