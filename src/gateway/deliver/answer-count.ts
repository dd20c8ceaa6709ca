// The gateway's own answer to a count of tokens, where no channel of the group has one in the client's dialect.

import { writeTokenCount } from "../../bridges/convert.ts";
import { estimateInputTokens } from "../../billing/estimate.ts";
import type { Request } from "../request.ts";

/** An estimate is better than an error: tools decide by it when to compact a conversation. */
export function answerCount(r: Request): void {
  const tokens = estimateInputTokens(r.body.plain ?? new Uint8Array(0));
  const fields = [
    ["content-type", "application/json"],
    ["x-gateway-estimated", "input_tokens"],
    ["x-request-id", r.id],
  ] as const;
  r.exchange.answer(200, fields, writeTokenCount(r.target.endpoint.dialect.name, tokens));
}
