// Quotes a path or a name as one word for the user's shell.

/** Unchanged if no shell interprets it. Otherwise quoted for POSIX shells, fish
 *  and PowerShell. On Windows, most quoted paths work in cmd, too. */
export function quoteWord(text: string): string {
  return process.platform === "win32" ? quoteForWindows(text) : quoteForPosix(text);
}

function quoteForPosix(text: string): string {
  if (/^[\p{L}\p{N}_@%+=:,./-]+$/u.test(text)) return text;
  return `'${text.replaceAll("'", "'\\''")}'`;
}

/** PowerShell interprets `$` and backticks between double quotes.
 *  cmd has no single quotes. */
export function quoteForWindows(text: string): string {
  if (/^[\p{L}\p{N}_+:./\\-]+$/u.test(text)) return text;
  return /["$`%]/.test(text) ? `'${text.replaceAll("'", "''")}'` : `"${text}"`;
}
