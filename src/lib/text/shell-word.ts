// Quotes a path or a name as one word of a command that people copy into their shell.

/** Unchanged if no shell interprets any part of it. Otherwise quoted for POSIX shells, fish and PowerShell alike. */
export function quoteWord(text: string): string {
  if (/^[\p{L}\p{N}_@%+=:,./-]+$/u.test(text)) return text;
  return `'${text.replaceAll("'", "'\\''")}'`;
}
