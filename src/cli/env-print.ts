// `gateway env`: a tool's settings as lines for the shell, or as JSON.

import { connect, type Connected, splitWords, type ToolFlags } from "./connection.ts";
import { GEMINI_SETTINGS, isGeminiReady, locateGeminiSettings } from "./gemini-home.ts";
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
  const file = needFile(connected);
  if (flags.json === true) {
    printJson({ ...describeForScripts(connected), ...setting, file });
    return;
  }
  const shell = flags.shell ?? guessShell(process.env);
  for (const line of writeSetting(shell, tool.program?.name ?? null, setting)) print(line);
  if (file === null) return;
  tell(
    `${tool.title} also needs this in ${file.path}, once: ${JSON.stringify(file.content)} ` +
      `(\`gateway run ${tool.name}\` does without).`,
  );
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

/** What variables cannot say; null: nothing, or it is said already. */
function needFile({ tool }: Connected): { path: string; content: object } | null {
  if (tool.needsSettingsFile !== true || isGeminiReady(process.env)) return null;
  return { path: locateGeminiSettings(process.env), content: GEMINI_SETTINGS };
}
