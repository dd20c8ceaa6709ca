// The loop that brings a body to the client: without secrets, at the client's pace, and shown to the meter.

import { UpstreamFault } from "../../lib/http/faults.ts";
import type { Body } from "../../lib/http/upstream.ts";
import { StreamRedactor } from "../intake/secrets.ts";
import type { Request } from "../request.ts";

/** `send` gets each piece without secrets: it writes it and shows it to the meter. It returns a promise if the client reads
 *  slowly. Returns the fault that broke the body off; null: the body has ended. */
export async function passBody(
  r: Request,
  body: Body,
  send: (piece: Uint8Array) => Promise<void> | null,
): Promise<UpstreamFault | null> {
  const redactor = new StreamRedactor(r.secrets);
  let fault: UpstreamFault | null = null;
  try {
    for (let chunk = await body.read(); chunk !== null; chunk = await body.read()) {
      const piece = redactor.pass(chunk);
      const slow = piece.length === 0 ? null : send(piece);
      if (slow !== null) await slow; // nobody reads meanwhile, so the upstream is not read
    }
  } catch (thrown) {
    if (!(thrown instanceof UpstreamFault)) throw thrown;
    fault = thrown;
  }
  const rest = redactor.end();
  if (rest.length > 0) void send(rest);
  return fault;
}
