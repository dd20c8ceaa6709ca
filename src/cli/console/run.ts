// `gateway console`: a session of menus. Each entry calls the same function as the
// command with that meaning.

import { channelEntries, keyEntries, planEntries, showSomeModels, spendingEntries } from "./entries.ts";
import { showChannels } from "../channels/run.ts";
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
    refuseUsage("The console needs a terminal. `gateway --help` lists the commands that work without one.");
  // Between two prompts, Ctrl-C arrives as a signal.
  const end = (): never => process.exit(0);
  process.on("SIGINT", end);
  try {
    const flags = { config: await locateConfig(config) };
    openConfig(flags);
    await runMenu("What do you want to do?", () => listEntries(flags), "Leave");
  } catch (error) {
    if (!(error instanceof Cancelled)) throw error;
  } finally {
    process.off("SIGINT", end);
  }
  // An entry may have reported a failure. The session itself succeeded.
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

/** Shows the list first, then the menu. */
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
