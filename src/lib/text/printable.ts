// Makes others' text harmless for terminals and parsers: escape sequences
// can type as if they were the user, and bidirectional overrides reorder a line.

/** Stands where a secret was. */
export const REMOVED = "[secret removed]";

/** Characters that print nothing, except the joiners of emoji and scripts. */
const UNPRINTABLE = /(?![\u200C\u200D])[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/gu;

/** Writes these characters like `\u001b`.
 *  JSON from JSON.stringify keeps its value. */
export function escapeText(text: string): string {
  return text.replaceAll(UNPRINTABLE, escapeUnits);
}

export function escapeLines(text: string): string {
  return text.split("\n").map(escapeText).join("\n");
}

/** For names that other programs read: a shell, or a tool's settings. */
export function isPrintable(text: string): boolean {
  return text.search(UNPRINTABLE) === -1;
}

function escapeUnits(character: string): string {
  return Array.from(
    { length: character.length },
    (_, index) => `\\u${character.charCodeAt(index).toString(16).padStart(4, "0")}`,
  ).join("");
}
