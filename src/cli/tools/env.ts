// `gateway env`: a tool's settings as shell lines or JSON.

import { printJson, printNote } from "../terminal/terminal.ts";
import { connect, type ToolConnection, type ToolFlags } from "./connection.ts";
import { type App, APPS } from "./env-tools.ts";
import { describeMisleading, prepare } from "./environment.ts";
import { guessShell, type Shell, writeSetting } from "./shells.ts";
import { listMisleading, type Tool, type ToolEnvironment } from "./tool.ts";
import { findTool } from "./tools.ts";

export interface EnvFlags extends ToolFlags {
  readonly shell?: Shell;
  readonly json?: true;
}

export async function printEnv(name: string, word: string | undefined, flags: EnvFlags): Promise<void> {
  const app = APPS.get(name);
  const tool = app === undefined ? findTool(name) : speakFor(app, name);
  const connected = await connect(tool, word ?? null, flags, {});
  const setting = prepare(tool, connected.connection, process.env);
  if (app !== undefined) return printApp(app, connected, setting, flags);
  const file = tool.file?.(connected.connection, setting, process.env) ?? null;
  const shown = file && { path: file.path, content: file.content };
  if (flags.json === true)
    return printJson({
      ...describe(connected),
      ...setting,
      file: shown,
    });
  printLines(writeSetting(flags.shell ?? guessShell(process.env), tool.program?.name ?? null, setting));
  explain(connected, file?.advice);
}

function describe({ tool, key, connection }: ToolConnection) {
  return {
    tool: tool.name,
    key: key?.name ?? null,
    group: key?.group.name ?? null,
    platform: connection.platform,
    base_url: connection.base,
  };
}

function printApp(app: App, connected: ToolConnection, setting: ToolEnvironment, { json }: EnvFlags): void {
  const settings = app.list(connected.connection, setting);
  if (json === true)
    return printJson({
      ...describe(connected),
      env: {},
      args: [],
      file: null,
      settings,
    });
  const values = Object.entries(settings).map(([name, value]) => `${name} = ${JSON.stringify(value)}`);
  printLines([...app.place(process.env).map((line) => `# ${line}`), ...values]);
}

/** An app has its own key and sends no plan's login. */
function speakFor({ tool, title }: App, name: string): Tool {
  const { login: _, ...spoken } = findTool(tool);
  return { ...spoken, name, title };
}

/** Not `print`: a value may have several lines. */
function printLines(lines: readonly string[]): void {
  process.stdout.write(lines.map((line) => `${line}\n`).join(""));
}

function explain({ tool, connection }: ToolConnection, advice: string | undefined): void {
  for (const text of tool.describe?.(connection, process.env, null) ?? [])
    if (text !== false) printNote(text);
  const misleading = describeMisleading(tool.title, listMisleading(tool, connection), process.env);
  if (misleading !== null) printNote(`${misleading}. The printed lines unset it.`);
  const instead = tool.overlay === undefined ? "" : ` (\`gateway run ${tool.name}\` needs no change)`;
  if (advice !== undefined) printNote(`${tool.title} ${advice}${instead}.`);
}
