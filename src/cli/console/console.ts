// `gateway console`: a session of menus. Each entry calls the same function as the
// command with that meaning.

import {
  channelEntries,
  groupEntries,
  keyEntries,
  planEntries,
  priceEntries,
  showSomeModels,
  spendingEntries,
} from "./entries.ts";
import { showChannels } from "../channels/channels.ts";
import { listGroups } from "../catalog/groups.ts";
import { listKeys } from "../keys/list.ts";
import { type Entry, type Menu, runMenu } from "./menu.ts";
import { findOrCreateConfig } from "../setup/init/ask-init.ts";
import { type ConfigFlags, openConfig } from "../access/config.ts";
import { listPlans } from "../catalog/plans.ts";
import { canPrompt, Cancelled, refuseUsage } from "../terminal/terminal.ts";
import { watchTop } from "../live/top.ts";

export async function runConsole({ config }: ConfigFlags): Promise<void> {
  if (!canPrompt() || !process.stdout.isTTY)
    refuseUsage("The console needs a terminal. `gateway --help` lists the commands that work without one.");
  // Between two prompts, Ctrl-C arrives as a signal.
  const end = (): never => process.exit(0);
  process.on("SIGINT", end);
  try {
    const flags = { config: await findOrCreateConfig(config) };
    openConfig(flags);
    await runMenu({ message: "What do you want to do?", entries: () => listEntries(flags), last: "Leave" });
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
  const openMenu = (menu: Menu) => (): Promise<void> => runMenu(menu);
  return [
    {
      label: "API keys",
      run: openMenu({ message: "API keys", show: () => listKeys(flags), entries: () => keyEntries(flags) }),
    },
    {
      label: "Groups and plans",
      run: openMenu({
        message: "Groups and plans",
        show: showPlans,
        entries: () => [...planEntries(flags), ...groupEntries(flags)],
      }),
    },
    {
      label: "Channels",
      run: openMenu({
        message: "Channels",
        show: () => showChannels(flags),
        entries: () => channelEntries(flags),
      }),
    },
    { label: "Models", run: () => showSomeModels(flags) },
    { label: "Prices", run: openMenu({ message: "Prices", entries: () => priceEntries(flags) }) },
    { label: "Spending", run: openMenu({ message: "Spending", entries: () => spendingEntries(flags) }) },
    {
      label: "Live view of the running gateway",
      run: async () => {
        if ((await watchTop(flags)) === "interrupt") throw new Cancelled(true);
      },
    },
  ];
}
