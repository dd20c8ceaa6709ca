// What the system, or a library, calls an error besides its words: "ENOENT". What it means is the reader's.

/** Empty where it has none. */
export function codeOf(error: unknown): string {
  return error instanceof Error && "code" in error ? String(error.code) : "";
}
