// Reads prices from a host of the internet, only when it is asked.

import { getErrorCode, getErrorMessage } from "../../lib/errors.ts";
import { isLoopback } from "../../config/proxy.ts";

const MAX_REDIRECTS = 5;

/** Over TLS, unless it is this machine, and from no other host than the one that was named. */
export async function fetchFromHost(place: URL, timeoutMs: number): Promise<Response> {
  const signal = AbortSignal.timeout(timeoutMs);
  let url = place;
  for (let count = 0; count <= MAX_REDIRECTS; count += 1) {
    if (url.protocol !== "https:" && !isLoopback(url.hostname)) throw new Error("only https is accepted");
    if (url.host !== place.host) throw new Error(`it redirects to another host, ${url.host}`);
    const answer = await fetch(url, { signal, redirect: "manual" });
    const target = answer.status >= 300 && answer.status < 400 ? answer.headers.get("location") : null;
    if (target === null) return answer;
    url = new URL(target, url);
  }
  throw new Error("it redirects too often");
}

/** No more than `maxBytes` are read. */
export async function readBounded(answer: Response, maxBytes: number): Promise<string> {
  const parts: Uint8Array[] = [];
  let size = 0;
  try {
    for await (const chunk of answer.body ?? []) {
      size += chunk.length;
      if (size > maxBytes) break;
      parts.push(chunk);
    }
  } catch (error) {
    throw new Error(`the answer broke off: ${getErrorCode(error) || getErrorMessage(error)}`, {
      cause: error,
    });
  }
  if (size > maxBytes) throw new Error(`it is larger than ${maxBytes} bytes`);
  return Buffer.concat(parts).toString("utf8");
}
