// The service units of three systems, quoted for any path.

import launchd from "./unit-launchd.txt" with { type: "text" };
import systemd from "./unit-systemd.txt" with { type: "text" };
import windows from "./unit-windows.txt" with { type: "text" };

/** Marks our units. A file without it is never overwritten. */
export const MARK = "Written by `gateway service install`";
export const LABEL = "local.gateway";
export const UNIT_NAME = "gateway.service";

export interface ServiceSpec {
  readonly command: readonly string[];
  readonly configPath: string;
  readonly envPath: string;
}

function fill(text: string, values: Readonly<Record<string, string>>): string {
  const all: typeof values = { MARK, LABEL, ...values };
  return text.replaceAll(/\{([A-Z]+)\}/g, (whole, name: string) => all[name] ?? whole);
}

export function writeUnit({ command, configPath, envPath }: ServiceSpec): string {
  const words = [...command, "serve", "--config", configPath];
  // systemd refuses these characters in an executable's path.
  const isOdd = /["'\\$]/.test(command[0] ?? "");
  const start = isOdd ? ["/bin/sh", "-c", 'exec "$0" "$@"', ...words] : words;
  return fill(systemd, { START: start.map(quoteForSystemd).join(" "), ENV: envPath.replaceAll("%", "%%") });
}

function quoteForSystemd(word: string): string {
  const escaped = word
    .replaceAll("%", "%%")
    .replaceAll("\\", "\\\\")
    .replaceAll('"', '\\"')
    .replaceAll("$", "$$$$");
  return /^[\w@%+=:,./-]+$/.test(word) ? escaped : `"${escaped}"`;
}

/** launchd reads no file of variables: a shell does. */
const READ_ENV = 'set -a; [ ! -f "$0" ] || . "$0"; set +a; exec "$@"';

export function writeAgent({ command, configPath, envPath }: ServiceSpec, logPath: string): string {
  const words = ["/bin/sh", "-c", READ_ENV, envPath, ...command, "serve", "--config", configPath];
  const list = words.map((word) => `    <string>${escapeXml(word)}</string>`).join("\n");
  return fill(launchd, { WORDS: list, LOG: escapeXml(logPath) });
}

/** `conhost --headless` hides the window, cmd writes the log. */
export function writeTask({ command, configPath }: ServiceSpec, user: string, logPath: string): string {
  const words = [...command, "serve", "--config", configPath].map((word) => `"${word}"`).join(" ");
  const args = `--headless cmd.exe /d /s /c "${words} >> "${logPath}" 2>&1"`;
  return fill(windows, { USER: escapeXml(user), ARGS: escapeXml(args) });
}

function escapeXml(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}
