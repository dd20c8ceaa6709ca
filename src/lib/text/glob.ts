// Model globs: `*` matches any run of characters. Every other character matches itself.

export function matchesGlob(glob: string, text: string): boolean {
  const parts = glob.split("*");
  const first = parts[0] ?? "";
  if (parts.length === 1) return glob === text;
  const last = parts.at(-1) ?? "";
  if (!text.startsWith(first) || text.length < first.length + last.length || !text.endsWith(last))
    return false;
  let from = first.length;
  const end = text.length - last.length;
  for (const part of parts.slice(1, -1)) {
    const found = text.indexOf(part, from);
    if (found < 0 || found + part.length > end) return false;
    from = found + part.length;
  }
  return true;
}
