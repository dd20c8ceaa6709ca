// The gateway's own answer to a count of tokens, where no channel of the group has one in the client's dialect: the
// channel's own count, or else an estimate.

import { writeTokenCount } from "../../bridges/convert.ts";
import { estimateInputTokens } from "../../billing/estimate.ts";
import type { DialectName } from "../../dialects/dialect.ts";
import { parseJson } from "../../lib/json/json.ts";
import type { Field } from "../../lib/http/fields.ts";
import { openBill } from "../bill/bill.ts";
import type { Gateway } from "../gateway.ts";
import { secretsOf } from "../intake/secrets.ts";
import { idFields } from "../intake/refuse.ts";
import { type Ending, OWN_ANSWER, type Request } from "../request.ts";
import { fetchWhole, hurry } from "../upstream/fetch.ts";
import { addressOf, joinPath } from "../upstream/address.ts";
import { crossCount } from "./convert.ts";
import { sendCrossed } from "./forward.ts";

/** A client asks for many counts at once, and waits for all of them. */
const MAX_WAIT_MS = 10_000;
const MAX_BYTES = 64 * 1024;

/** An estimate is better than an error: tools decide by it when to compact a conversation. */
export async function answerCount(r: Request, gateway: Gateway): Promise<Ending> {
  await openBill(r, gateway);
  try {
    const { dialect } = r.target.endpoint;
    const counted = await askChannel(r, gateway).catch(() => null);
    const tokens = counted?.tokens ?? estimateInputTokens(r.body.plain ?? new Uint8Array(0));
    const how: [string, string] =
      counted === null
        ? ["x-gateway-estimated", "input_tokens"]
        : ["x-gateway-converted", `${dialect.name}->${counted.dialect}`];
    const fields: Field[] = [["content-type", "application/json"], how, ...idFields(dialect, r.id)];
    r.exchange.answer(200, fields, writeTokenCount(dialect.name, tokens));
    return OWN_ANSWER;
  } finally {
    r.admission.release();
    r.memory?.free();
  }
}

interface Counted {
  readonly tokens: number;
  readonly dialect: DialectName;
}

/** Null if it does not answer with a number. */
async function askChannel(r: Request, gateway: Gateway): Promise<Counted | null> {
  const { channels, catalog, client, now } = gateway;
  const [candidate] = r.candidates;
  if (candidate === undefined || !channels.admits(candidate, now())) return null;
  const crossed = crossCount(r, candidate);
  if (crossed === null) return null;
  const { channel } = candidate;
  const { origin, deadlines } = addressOf(channel);
  const { path, body, fields } = sendCrossed(r, crossed, secretsOf(catalog));
  const request = { origin, method: "POST", target: joinPath(channel, path), fields, body };
  const fetched = await fetchWhole(
    client,
    { ...request, deadlines: hurry(deadlines, MAX_WAIT_MS) },
    MAX_BYTES,
  );
  if (fetched.response.status !== 200 || fetched.isCut) return null;
  const tokens = crossed.read(parseJson(new TextDecoder().decode(fetched.body)));
  return tokens === undefined || tokens === 0 ? null : { tokens, dialect: crossed.dialect.name };
}
