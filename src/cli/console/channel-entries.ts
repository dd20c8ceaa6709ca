// The menu of `gateway console` for channels. Each entry calls the same function as the command.

import { readSecretText } from "../../config/yaml/scalars.ts";
import { actOnChannel, type ChannelAction, showChannels } from "../channels/channels.ts";
import { type ConfigFlags, openConfig } from "../access/config.ts";
import { addChannel } from "../setup/channels/add.ts";
import { CHANNEL_SETTINGS, removeChannel, setChannel } from "../setup/channels/change.ts";
import { complain } from "../setup/init/init.ts";
import { needsAddress, PRESETS } from "../setup/presets.ts";
import { askOne, askSecret, askText, listChoices } from "../terminal/terminal.ts";
import { chooseEntry, type Entry } from "./menu.ts";
import { askSetting, requireText } from "./questions.ts";

export function channelEntries(flags: ConfigFlags): Entry[] {
  const choose = (): Promise<string> =>
    askOne("Which channel?", listChoices(openConfig(flags).catalog.channels.keys()));
  const act = (label: string, name: ChannelAction): Entry => ({
    label,
    run: async () => actOnChannel(name, await choose(), flags),
  });
  const change = async (): Promise<void> => {
    const name = await choose();
    const entry = await chooseEntry(`The channel "${name}"`, listChanges(name, flags), "Back");
    await entry?.run();
  };
  return [
    { label: "Refresh", run: () => showChannels(flags) },
    { label: "Watch live", run: () => showChannels({ ...flags, watch: true }) },
    act("Check a channel now", "probe"),
    act("Disable a channel", "disable"),
    act("Enable a channel", "enable"),
    { label: "Add a channel", run: () => add(flags), changes: true },
    { label: "Change a channel", run: change, changes: true },
  ];
}

const URL_CHOICE = "";

async function add(flags: ConfigFlags): Promise<void> {
  const { channels, groups } = openConfig(flags).catalog;
  const presets = PRESETS.filter((preset) => !needsAddress(preset));
  const chosen = await askOne("Which provider?", [
    ...presets.map(({ id, title }) => ({ value: id, label: title })),
    { value: URL_CHOICE, label: "Another one, by its base URL" },
  ]);
  const what =
    chosen === URL_CHOICE ? await askText({ message: "The base URL", check: requireText }) : chosen;
  const preset = presets.find(({ id }) => id === what);
  const isNew = preset !== undefined && !channels.has(preset.channel);
  const name = isNew ? undefined : await askText({ message: "Name of the channel", check: requireText });
  const group = await askOne("For which group?", [
    { value: "", label: "A new group" },
    ...[...groups.values()]
      .filter(({ platform }) => preset === undefined || preset.platform === platform)
      .map((each) => ({ value: each.name, label: `${each.name} (${each.platform})` })),
  ]);
  await addChannel(what, {
    ...flags,
    check: true,
    ...(name !== undefined && { name }),
    ...(group !== "" && { group }),
  });
}

function listChanges(name: string, flags: ConfigFlags): Entry[] {
  const checked = { ...flags, check: true };
  const changeCredential = async (): Promise<void> => {
    const secret = await askSecret({ message: "The new credential", check: complain(readSecretText) });
    await setChannel(name, [], { ...checked, secret });
  };
  const { credential: _, ...settings } = CHANNEL_SETTINGS;
  return [
    {
      label: "Change a setting",
      run: () => askSetting(settings, (word) => setChannel(name, [word], checked)),
    },
    { label: "Change the credential", run: changeCredential },
    { label: "Remove", run: () => removeChannel(name, flags) },
  ];
}
