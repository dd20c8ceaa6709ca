// Whether a secret is shown.

const read = (_: string, hex: string): string => String.fromCharCode(Number.parseInt(hex, 16));

/** Throws if this many of the hidden characters are shown in a row: as they are, with JSON's escapes or with those of
 *  URLs, in whichever case. */
export function expectSafe(shown: string, hidden: string, most = 12): void {
  const views = [
    shown,
    shown.replaceAll(/\\u([0-9a-f]{4})/gi, read),
    shown.replaceAll(/%([0-7][0-9a-f])/gi, read),
  ]
    .join("\n")
    .toLowerCase();
  for (let at = 0; at + most <= hidden.length; at += 1) {
    const piece = hidden.slice(at, at + most).toLowerCase();
    if (views.includes(piece)) throw new Error(`shown: ${piece} in ${shown}`);
  }
}
