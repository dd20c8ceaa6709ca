// The gateway's own response to GET of a model list, or of one model.

import { listDialect } from "../../dialects/index.ts";
import { GatewayError } from "../../lib/errors.ts";
import type { Field } from "../../lib/http/fields.ts";
import { isLongList, listGroup } from "../channels/model-list.ts";
import { idFields } from "../intake/refuse.ts";
import type { Gateway } from "../gateway.ts";
import { type Ending, OWN_ANSWER, type Request } from "../request.ts";
import { nextTurn } from "../../lib/time/next-turn.ts";

/** Responds in the shape that the key's group has on that path. */
export async function answerModels(r: Request, gateway: Gateway): Promise<Ending> {
  const { key } = r;
  const { endpoint, model } = r.target;
  const dialect = listDialect(endpoint, key.group.platform);
  const served = await listGroup(key.group, gateway.lists, dialect);
  if (isLongList(served)) await nextTurn();
  const fields: Field[] = [["content-type", "application/json"], ...idFields(dialect, r.id)];
  if (model === null) {
    const entries = served.map(({ entry }) => entry);
    r.exchange.answer(200, fields, dialect.listBody(entries, new URLSearchParams(r.query)));
    return OWN_ANSWER;
  }
  const found = served.find(({ entry }) => entry.id === model.id);
  if (found === undefined) {
    throw new GatewayError(
      "unknown_model",
      `The group "${key.group.name}" serves no model "${model.id}". \`gateway models --group ${key.group.name}\` lists what it serves.`,
    );
  }
  r.exchange.answer(200, fields, dialect.modelBody(found.entry));
  return OWN_ANSWER;
}
