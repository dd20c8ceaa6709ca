// What a user changes in a running gateway: the name of each action, what it is given, and its function.

import { z } from "zod";
import { listLimitUses } from "../../billing/limits/alerts.ts";
import { repricingSchema } from "../../billing/ledger/line.ts";
import { suggestNearest } from "../../config/nearest.ts";
import { RECORDING_NAME } from "../../config/yaml/scalars.ts";
import { fail } from "../../lib/refusal.ts";
import { probeChannel } from "../channels/upkeep.ts";
import type { ChannelView } from "../channels/view.ts";
import type { Gateway } from "../gateway.ts";
import { addKey, changeKey, changeSchema, newKeySchema, NO_FILE } from "./keys.ts";
import { define, type Row } from "./row.ts";

const nothing = z.unknown();
const PRIVATE = true;

export const ACTIONS: Readonly<Record<string, Row>> = {
  "add-key": define(newKeySchema, addKey),
  "change-key": define(changeSchema, changeKey),
  "add-channel": define(
    z.lazy(() =>
      z.strictObject({
        what: z.string(),
        platform: z.string().optional(),
        name: z.string().optional(),
        group: z.string().optional(),
        credential: z.string().optional(),
      }),
    ),
    (wish, { setUp }) => (setUp ?? fail(NO_FILE)).add(wish),
  ),
  /** Returns the channel's new state. */
  "change-channel": define(
    z.lazy(() => z.strictObject({ name: z.string(), action: z.enum(["disable", "enable", "probe"]) })),
    ({ name, action }, { gateway }) => changeChannel(name, action, gateway),
  ),
  /** The owner accepts what starts have found in the ledger. */
  "accept-ledger": define(
    nothing,
    (_, { gateway }) => ({ accepted: gateway.ledger.acceptMarks().map(({ mark }) => mark) }),
    PRIVATE,
  ),
  /** Writes the amounts that `gateway ledger reprice` has found: the gateway writes its ledger alone. */
  "correct-ledger": define(
    z.lazy(() => z.array(repricingSchema)),
    (drafts, { gateway: { ledger, alerts, catalog, now } }) => {
      for (const draft of drafts) {
        if (ledger.problem !== null) fail(`Not all corrections were written: ${ledger.problem}.`);
        ledger.correct({ ...draft, time: new Date(now()).toISOString() });
      }
      alerts.check(listLimitUses(catalog.keys.values(), ledger.sums, now()));
      return { written: drafts.length };
    },
    PRIVATE,
  ),
  /** Reads the config now, and answers when it is applied or refused. `sha256`: of the text that a command has written. */
  "apply-config": define(
    z.lazy(() => z.object({ sha256: z.string() })),
    async ({ sha256 }, { configPath, follow }) => ({
      config: configPath,
      outcome: await follow.config(sha256),
    }),
    PRIVATE,
  ),
  /** The same with the price book next to the config. */
  "apply-prices": define(
    nothing,
    (_, { configPath, follow }) => ({ config: configPath, outcome: follow.prices() }),
    PRIVATE,
  ),
  /** Records a run from now on; without a name, no longer. */
  "record-run": define(
    z.lazy(() =>
      z.object({ session: z.string().min(1).max(200), name: z.string().regex(RECORDING_NAME).nullable() }),
    ),
    ({ session, name }, { gateway }) => gateway.recorder.recordRun(session, name),
    PRIVATE,
  ),
  /** A link that signs a browser in to the page. */
  "open-page": define(
    nothing,
    (_, { console }) => ({ url: (console() ?? fail("This gateway has no console.")).createLink() }),
    PRIVATE,
  ),
};

async function changeChannel(
  name: string,
  action: "disable" | "enable" | "probe",
  gateway: Gateway,
): Promise<ChannelView | null> {
  const { catalog, channels } = gateway;
  const channel = catalog.channels.get(name);
  if (channel === undefined)
    return fail(`There is no channel "${name}"${suggestNearest(name, catalog.channels.keys())}.`);
  if (action === "probe") await probeChannel(channel, gateway);
  else if (channel.disabled) fail(`The channel "${name}" is disabled in the config file: change it there.`);
  else channels.setDisabled(channel, action === "disable", gateway.now());
  return channels.view(catalog, gateway.now()).find((each) => each.name === name) ?? null;
}
