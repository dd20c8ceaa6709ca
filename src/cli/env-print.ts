// `gateway env`: a tool's settings as lines for the shell, or as JSON.

import { connect, type Connected, splitWords, type ToolFlags } from "./connection.ts";
import { guessShell, type Shell, writeSetting } from "./shells.ts";
import { print, printJson, tell } from "./terminal.ts";

export interface EnvFlags extends ToolFlags {
  readonly shell?: Shell;
  readonly json?: true;
}

export async function printEnv(words: readonly string[], flags: EnvFlags): Promise<void> {
  const { tool, key } = splitWords(words);
  const connected = await connect(tool, key, flags);
  const setting = tool.connect(connected.connection);
  const obstacle = tool.overlay?.find(process.env, setting) ?? null;
  if (flags.json === true) {
    const file = obstacle === null ? null : { path: obstacle.path, content: obstacle.content };
    printJson({ ...describeForScripts(connected), ...setting, file });
    return;
  }
  const shell = flags.shell ?? guessShell(process.env);
  for (const line of writeSetting(shell, tool.program?.name ?? null, setting)) print(line);
  if (obstacle !== null) tell(`${tool.title} ${obstacle.words} (\`gateway run ${tool.name}\` does without).`);
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
