// The action of `gateway prices set`. The file keeps its comments and order.

import { PRICE_KINDS } from "../../../config/schema.ts";
import { type ConfigFlags, openConfig } from "../../access/config.ts";
import { planChanges, readChanges, type Settings } from "../../access/settings.ts";
import { printNote } from "../../terminal/terminal.ts";

const PRICES: Settings = Object.fromEntries(PRICE_KINDS.map((kind) => [kind, { form: "text" }]));

export async function setPrices(model: string, words: readonly string[], flags: ConfigFlags): Promise<void> {
  const changes = readChanges(words, PRICES);
  const catalog = await openConfig(flags).edit(() => planChanges(["prices", model], changes));
  const prices = Object.entries(catalog.prices.get(model) ?? {});
  const shown = prices.map(([kind, usd]) => `${kind} $${usd}`).join(", ");
  printNote(
    shown === ""
      ? `The config has no prices for "${model}" any more. Those of the price book apply.`
      : `In the config, "${model}" costs ${shown}. Requests that end from now on pay this.`,
  );
}
