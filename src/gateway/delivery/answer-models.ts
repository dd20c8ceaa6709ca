// The gateway's own response to GET of a model list, or of one model.

import type { Key } from "../../config/catalog.ts";
import { listDialect } from "../../dialects/index.ts";
import { GatewayError } from "../../lib/errors.ts";
import { isLongList, listGroup } from "../channels/model-list.ts";
import type { Gateway } from "../gateway.ts";
import type { ClientCall } from "../intake/call.ts";
import { nextTurn } from "../../lib/time/next-turn.ts";

/** Responds in the shape that the key's group has on that path. */
export async function answerModels(call: ClientCall, key: Key, gateway: Gateway): Promise<void> {
  const { endpoint, model } = call.target;
  const dialect = listDialect(endpoint, key.group.platform);
  const served = await listGroup(key.group, gateway.lists, dialect);
  if (isLongList(served)) await nextTurn();
  const fields = [
    ["content-type", "application/json"],
    ["x-request-id", call.id],
  ] as const;
  if (model === null) {
    const entries = served.map(({ entry }) => entry);
    call.exchange.answer(200, fields, dialect.listBody(entries, new URLSearchParams(call.query)));
    return;
  }
  const found = served.find(({ entry }) => entry.id === model.id);
  if (found === undefined) {
    throw new GatewayError(
      "unknown_model",
      `The group "${key.group.name}" serves no model "${model.id}". \`gateway models --group ${key.group.name}\` lists what it serves.`,
    );
  }
  call.exchange.answer(200, fields, dialect.modelBody(found.entry));
}
