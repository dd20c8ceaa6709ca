// The known providers. `source`: the documentation; "quoted": others quote it.

import { z } from "zod";
import { CHANNEL_WORDS, groupPlatform, type Platform } from "../../config/schema.ts";
import presets from "./presets.json";

const preset = z.object({
  id: z.string(),
  title: z.string(),
  platform: z.enum(CHANNEL_WORDS),
  channel: z.string(),
  baseUrl: z.string(),
  variable: z.string(),
  group: z.string(),
  description: z.string(),
  tool: z.string(),
  /** `bearer`: reads the credential from `Authorization`. `local`: a server on this machine, free. */
  kind: z.enum(["key", "bearer", "local", "login"]),
});
export type Preset = Readonly<z.infer<typeof preset>>;

export const PRESETS: readonly Preset[] = z.array(preset).parse(presets);

export const ACCOUNTS: readonly Preset[] = PRESETS.filter(
  ({ variable }, index) =>
    variable === "" || PRESETS.findIndex((other) => other.variable === variable) === index,
);

export const LOCAL_TIMEOUTS = { first_byte: "30m", idle: "30m" };

export function needsAddress({ id }: Preset): boolean {
  return id === "relay";
}

export interface PresetGroup {
  readonly name: string;
  readonly platform: Platform;
  readonly convert?: true;
  readonly description: string;
  readonly tool: string;
}

/** A server on this machine also has one for Claude Code; both convert. */
export function listGroups(preset: Preset): PresetGroup[] {
  const { id, group, platform, description, tool, kind } = preset;
  const own = { name: group, platform: groupPlatform(platform), description, tool };
  if (kind !== "local") return [own];
  const claude: PresetGroup = {
    name: `claude-${id}`,
    platform: "messages",
    convert: true,
    description: `Claude Code on ${description}`,
    tool: "claude",
  };
  return [{ ...own, convert: true }, claude];
}
