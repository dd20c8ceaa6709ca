// Prints new secrets on stdout. They are shown only this once, so a failed write is a failure of the command.

import { quoteWord } from "../../lib/text/shell-word.ts";
import { fail } from "../terminal/terminal.ts";

export interface NewSecrets {
  readonly lines: readonly string[];
  /** The keys that the secrets belong to. */
  readonly names: readonly string[];
  /** What has already happened, as the start of a sentence. */
  readonly done: string;
}

export async function printSecrets({ lines, names, done }: NewSecrets): Promise<void> {
  const [first, ...others] = names;
  // Not with `print`: a shell reads these lines, and a value may have several of them.
  const text = lines.map((line) => `${line}\n`).join("");
  if (first === undefined) process.stdout.write(text);
  else if (!(await writeToStdout(text))) {
    const secrets = others.length === 0 ? "the secret" : "the secrets";
    const each = others.length === 0 ? "" : ", and so on for each key";
    fail(
      `${done}, but ${secrets} could not be printed: \`gateway keys rotate ${quoteWord(first)}\` prints a new one${each}.`,
    );
  }
}

function writeToStdout(text: string): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>();
  const onError = (): void => resolve(false);
  // Without a listener here, program.ts would end the command.
  process.stdout.once("error", onError);
  process.stdout.write(text, (error) => {
    if (error instanceof Error) return;
    process.stdout.off("error", onError);
    resolve(true);
  });
  return promise;
}
