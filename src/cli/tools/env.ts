// The action of `gateway env`: prints a tool's settings as lines for a shell, or as JSON.

import { connect, findTool, type ToolConnection, type ToolFlags } from "./connection.ts";
import { describeMisleading, prepare } from "./environment.ts";
import { type App, APPS } from "./env-tools.ts";
import { listMisleading, type Tool } from "./tool.ts";
import { guessShell, type Shell, writeSetting } from "./shells.ts";
import { printSecrets } from "../keys/secrets.ts";
import { printNote } from "../terminal/terminal.ts";

export interface EnvFlags extends ToolFlags {
  readonly shell?: Shell;
  readonly json?: true;
}

/** `claude`, or `claude laptop`. A secret may replace the key's name. */
export async function printEnv(name: string, key: string | undefined, flags: EnvFlags): Promise<void> {
  const app = APPS.get(name);
  const tool = app === undefined ? findTool(name) : speakFor(app);
  const connected = await connect(tool, key ?? null, flags, { owns: false });
  if (app !== undefined) return printApp(app, name, connected, flags);
  return printTool(connected, flags);
}

/** An app speaks as its tool does, but sends no login of a plan. */
function speakFor({ tool, title }: App): Tool {
  const { login: _, ...spoken } = findTool(tool);
  return { ...spoken, title };
}

async function printTool(connected: ToolConnection, flags: EnvFlags): Promise<void> {
  const { tool } = connected;
  const setting = prepare(tool, connected.connection, process.env);
  const conflict = tool.overlay?.(connected.connection).find(process.env, setting) ?? null;
  const file = conflict === null ? null : { path: conflict.path, content: conflict.content };
  const shell = flags.shell ?? guessShell(process.env);
  const lines = writeSetting(shell, tool.program?.name ?? null, setting);
  await printLines(connected, flags, lines, { ...setting, file });
  if (flags.json === true) return;
  noteDifferences(connected);
  if (conflict !== null)
    printNote(`${tool.title} ${conflict.advice} (\`gateway run ${tool.name}\` needs no change).`);
}

/** For an app, there is nothing that a shell could set. */
async function printApp(app: App, name: string, connected: ToolConnection, flags: EnvFlags): Promise<void> {
  const { tool, connection } = connected;
  const settings = app.list(connection, tool.connect(connection));
  const described = { tool: name, env: {}, args: [], file: null, settings };
  await printLines(connected, flags, app.write(settings, process.env), described);
}

/** For people, or for scripts. A new key's secret is shown only here. */
async function printLines(
  { tool, connection, key }: ToolConnection,
  flags: EnvFlags,
  lines: readonly string[],
  more: object,
): Promise<void> {
  const described = {
    tool: tool.name,
    key: key?.name ?? null,
    group: key?.group.name ?? null,
    platform: connection.platform,
    base_url: connection.base,
    ...more,
  };
  const made = key?.isNew === true ? [key.name] : [];
  await printSecrets({
    lines: flags.json === true ? [JSON.stringify(described)] : lines,
    names: made,
    done: `The key "${made.join()}" was created`,
  });
}

function noteDifferences({ tool, connection }: ToolConnection): void {
  const loss = tool.describeLoss?.(connection) ?? null;
  if (loss !== null) printNote(loss);
  const misleading = describeMisleading(tool.title, listMisleading(tool, connection), process.env);
  if (misleading !== null) printNote(`${misleading}. The printed lines unset it.`);
  if (tool.sideEffect !== undefined) printNote(tool.sideEffect);
}
