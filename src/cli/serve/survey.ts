// What `gateway serve` reports after its start: damaged lines of the ledger, models in use without a price, and
// variables that mislead tools which are started here. `gateway doctor` explains each.

import type { PriceBook } from "../../billing/prices.ts";
import type { SeenModel } from "../../billing/report/seen-models.ts";
import type { Catalog } from "../../config/catalog.ts";
import type { Environment } from "../../config/yaml/expand.ts";
import { listMisleading } from "../doctor/shell.ts";
import { escapeUnprintable } from "../../lib/text/printable.ts";
import { formatCount } from "../terminal/text.ts";
import { hasPrice, listInUse } from "../money/prices/in-use.ts";

export interface Survey {
  readonly catalog: Catalog;
  readonly prices: PriceBook;
  readonly address: { readonly host: string; readonly port: number };
  readonly warn: (text: string) => void;
  readonly readLedger: () => Promise<LedgerUse>;
  /** Ends the survey early. */
  readonly signal: AbortSignal;
}

export async function surveyStart(survey: Survey, env: Environment): Promise<void> {
  const { address, warn, signal } = survey;
  const names = listMisleading(address, env);
  if (names.length > 0)
    warn(
      `note: ${names.join(", ")} ${names.length === 1 ? "is" : "are"} set here and can lead tools past the gateway. ` +
        "Start them with `gateway run`, or see `gateway doctor`",
    );
  const { damaged, models } = await survey.readLedger();
  if (signal.aborted) return;
  if (damaged > 0)
    warn(
      `warning: ${formatCount(damaged, "line")} of the ledger cannot be read and ${damaged === 1 ? "is" : "are"} missing from all amounts: ` +
        "`gateway ledger verify` names them",
    );
  const unpriced = findUnpriced(survey, models);
  if (unpriced.length > 0)
    warn(
      `warning: models in use have no price: ${unpriced.map(escapeUnprintable).join(", ")}. \`gateway prices check\` says what to do`,
    );
}

interface LedgerUse {
  readonly damaged: number;
  readonly models: readonly SeenModel[];
}

const MAX_MODELS_SHOWN = 5;

function findUnpriced({ catalog, prices }: Survey, seen: LedgerUse["models"]): string[] {
  const unpriced = listInUse(catalog, seen).filter((each) => !hasPrice(catalog, prices, each));
  const all = [...new Set(unpriced.map(({ model }) => model))];
  const more = all.length - MAX_MODELS_SHOWN;
  return more > 0 ? [...all.slice(0, MAX_MODELS_SHOWN), `and ${more} more`] : all;
}
