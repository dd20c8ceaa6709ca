// `gateway env`: a tool's settings as lines for the shell, or as JSON.

import { connect, type Connected, splitWords, type ToolFlags } from "./connection.ts";
import { describeMisleading } from "./misleading.ts";
import { prepare } from "./prepare.ts";
import { guessShell, type Shell, writeSetting } from "./shells.ts";
import { printSecrets } from "../keys/print.ts";
import { tell } from "../terminal.ts";

export interface EnvFlags extends ToolFlags {
  readonly shell?: Shell;
  readonly json?: true;
}

export async function printEnv(words: readonly string[], flags: EnvFlags): Promise<void> {
  const { tool, key } = splitWords(words);
  const connected = await connect(tool, key, flags);
  const setting = prepare(tool, connected.connection, process.env);
  const obstacle = tool.overlay?.find(process.env, setting) ?? null;
  const file = obstacle === null ? null : { path: obstacle.path, content: obstacle.content };
  const shell = flags.shell ?? guessShell(process.env);
  const made = nameMade(connected);
  await printSecrets({
    lines:
      flags.json === true
        ? [JSON.stringify({ ...describeForScripts(connected), ...setting, file })]
        : writeSetting(shell, tool.program?.name ?? null, setting),
    names: made,
    deed: `The key "${made.join()}" was made`,
  });
  if (flags.json === true) return;
  const misleading = describeMisleading(tool.title, tool.misleading, process.env);
  if (misleading !== null) tell(`${misleading}. The printed lines unset it.`);
  if (obstacle !== null) tell(`${tool.title} ${obstacle.words} (\`gateway run ${tool.name}\` does without).`);
}

/** Nobody has the secret of that key elsewhere. */
function nameMade({ key }: Connected): string[] {
  return key?.isNew === true ? [key.name] : [];
}

function describeForScripts({ tool, connection, key }: Connected): Record<string, unknown> {
  return {
    tool: tool.name,
    key: key?.name ?? null,
    group: key?.group.name ?? null,
    platform: connection.platform,
    base_url: connection.base,
  };
}
