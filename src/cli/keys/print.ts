// New secrets on stdout, which is the only time that they are shown: where it does not take them, that is no success.

import { quoteWord } from "../../lib/shell-word.ts";
import { fail, print } from "../terminal.ts";

export interface NewSecrets {
  readonly lines: readonly string[];
  /** The keys that they belong to. */
  readonly names: readonly string[];
  /** What has happened by now, as a sentence begins. */
  readonly deed: string;
}

export async function printSecrets({ lines, names, deed }: NewSecrets): Promise<void> {
  const [first, ...others] = names;
  if (first === undefined) for (const line of lines) print(line);
  else if (!(await isTaken(lines.map((line) => `${line}\n`).join("")))) {
    const them = others.length === 0 ? "the secret" : "the secrets";
    const rest = others.length === 0 ? "" : ", and so on";
    fail(
      `${deed}, but ${them} could not be shown: \`gateway keys rotate ${quoteWord(first)}\` makes another${rest}.`,
    );
  }
}

function isTaken(text: string): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>();
  const lose = (): void => resolve(false);
  // Heard here, else the command would end with it (program.ts).
  process.stdout.once("error", lose);
  process.stdout.write(text, (error) => {
    if (error instanceof Error) return;
    process.stdout.off("error", lose);
    resolve(true);
  });
  return promise;
}
