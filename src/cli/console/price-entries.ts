// The menu of `gateway console` for prices. Each entry calls the same function as the command.

import type { ConfigFlags } from "../access/config.ts";
import { setPrices } from "../money/prices/prices-set.ts";
import { checkPrices, showPrices } from "../money/prices/prices-show.ts";
import { updatePrices } from "../money/prices/prices-update.ts";
import { askText } from "../terminal/terminal.ts";
import type { Entry } from "./menu.ts";
import { requireText } from "./questions.ts";

export function priceEntries(flags: ConfigFlags): Entry[] {
  const askModel = (): Promise<string> => askText({ message: "Which model?", check: requireText });
  const set = async (): Promise<void> => {
    const model = await askModel();
    const message = "Prices in USD per million tokens (such as input=3 output=15; input=none removes one)";
    const words = await askText({ message, check: requireText });
    await setPrices(model, words.trim().split(/[\s,]+/), flags);
  };
  return [
    { label: "Models in use without a price", run: () => void checkPrices(flags) },
    { label: "The prices of a model", run: async () => showPrices(await askModel(), flags) },
    { label: "Set a price", run: set },
    {
      label: "What an update of the price book would change",
      run: () => updatePrices({ ...flags, dryRun: true }),
    },
    { label: "Update the price book", run: () => updatePrices(flags) },
  ];
}
