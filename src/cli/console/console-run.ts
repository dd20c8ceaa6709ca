// What `gateway console` does: a session of menus. Each entry calls what the
// command of the same meaning calls; nothing is decided here.

import {
  channelEntries,
  keyEntries,
  planEntries,
  showSomeModels,
  spendingEntries,
} from "./console-entries.ts";
import { showChannels } from "../channels/channels-run.ts";
import { listGroups } from "../catalog/groups-list.ts";
import { listKeys } from "../keys/list.ts";
import { type Entry, runMenu } from "./menu.ts";
import { locateConfig } from "../setup/ask-init.ts";
import { type ConfigFlags, openConfig } from "../config-access.ts";
import { listPlans } from "../catalog/plans-run.ts";
import { canAsk, Cancelled, refuseUsage } from "../terminal.ts";
import { watchTop } from "../live/top-run.ts";

export async function runConsole({ config }: ConfigFlags): Promise<void> {
  if (!canAsk() || !process.stdout.isTTY)
    refuseUsage("The console needs a terminal: `gateway --help` names the commands that need none.");
  // Between two questions the terminal sends a signal.
  const end = (): never => process.exit(0);
  process.on("SIGINT", end);
  try {
    const flags = { config: await locateConfig(config) };
    openConfig(flags);
    await runMenu("What do you want to see?", () => listEntries(flags), "Leave");
  } catch (error) {
    if (!(error instanceof Cancelled)) throw error;
  } finally {
    process.off("SIGINT", end);
  }
  // What an entry found wrong has been told; the session went well.
  process.exitCode = 0;
}

function listEntries(flags: ConfigFlags): Entry[] {
  const showPlans = (): void => {
    listGroups({ ...flags, all: true });
    listPlans(flags);
  };
  return [
    {
      label: "API keys",
      run: openMenu(
        () => listKeys(flags),
        "API keys",
        () => keyEntries(flags),
      ),
    },
    { label: "Groups and plans", run: openMenu(showPlans, "Plans", () => planEntries(flags)) },
    {
      label: "Channels",
      run: openMenu(
        () => showChannels(flags),
        "Channels",
        () => channelEntries(flags),
      ),
    },
    { label: "Models", run: () => showSomeModels(flags) },
    { label: "Spending", run: () => runMenu("Spending", () => spendingEntries(flags)) },
    {
      label: "Live view of the running gateway",
      run: async () => {
        if ((await watchTop(flags)) === "interrupt") throw new Cancelled(true);
      },
    },
  ];
}

/** Shows first what the menu is about. */
function openMenu(
  show: () => void | Promise<void>,
  message: string,
  entries: () => readonly Entry[],
): () => Promise<void> {
  return async () => {
    await show();
    await runMenu(message, entries);
  };
}
