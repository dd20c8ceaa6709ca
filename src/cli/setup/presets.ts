// The known providers, from presets.json. `source`: the documentation; "quoted": others quote it.

import { z } from "zod";
import { CHANNEL_WORDS, groupPlatform, type Platform } from "../../config/schema.ts";
import presets from "./presets.json";

const preset = z.object({
  id: z.string(),
  title: z.string(),
  /** The channel's platform. */
  platform: z.enum(CHANNEL_WORDS),
  channel: z.string(),
  baseUrl: z.string(),
  /** The variable with the credential; empty: none needed. */
  variable: z.string(),
  group: z.string(),
  description: z.string(),
  /** A tool that suits the group. */
  tool: z.string(),
  /** `bearer`: reads the credential from `Authorization`, which the platform's own clients do not
   *  send. `local`: a server on this machine: free, without a credential, slow with a long prompt.
   *  `login`: the tool's own login, without a credential. */
  kind: z.enum(["key", "bearer", "local", "login"]),
});
export type Preset = Readonly<z.infer<typeof preset>>;

export const PRESETS: readonly Preset[] = z.array(preset).parse(presets);

/** One preset for each account. Further presets are added by hand. */
export const ACCOUNTS: readonly Preset[] = PRESETS.filter(
  ({ variable }, index) =>
    variable === "" || PRESETS.findIndex((other) => other.variable === variable) === index,
);

/** For a server on this machine. */
export const LOCAL_TIMEOUTS = { first_byte: "30m", idle: "30m" };

/** The relay's address differs for every user. */
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

/** The preset's own group. A server on this machine also has one for Claude Code; both convert. */
export function listGroups(of: Preset): PresetGroup[] {
  const { group, platform, description, tool, kind } = of;
  const own = { name: group, platform: groupPlatform(platform), description, tool };
  return kind === "local" ? [{ ...own, convert: true }, groupForClaude(of)] : [own];
}

/** Claude Code on the provider's models: requests are converted. */
function groupForClaude({ id, description }: Preset): PresetGroup {
  const about = `Claude Code on ${description}`;
  return { name: `claude-${id}`, platform: "messages", convert: true, description: about, tool: "claude" };
}
