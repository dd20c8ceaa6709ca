// Secrets of keys: new ones are printed once, given ones are read.

import { fail, askSecret, canPrompt, readAll, refuseUsage } from "../terminal/terminal.ts";
import { messageOf } from "../../lib/errors.ts";
import { readSecretText } from "../../config/yaml/scalars.ts";

/** `isKept`: the user has the secret even if printing fails. */
export async function printSecrets(lines: readonly string[], done: string, isKept = false): Promise<void> {
  const isWritten = await writeToStdout(lines.map((line) => `${line}\n`).join(""));
  if (!isWritten && !isKept)
    fail(`${done}, but the secret could not be printed. \`gateway keys rotate NAME\` makes another.`);
}

export function printKeySecret(
  document: { readonly name: string; readonly secret: string },
  { json, secret: given }: { readonly json?: true; readonly secret?: string },
  done: string,
): Promise<void> {
  const { name, secret } = document;
  const line = json === true ? JSON.stringify(document) : secret;
  return printSecrets([line], `The key "${name}" ${done}`, given !== undefined);
}

function writeToStdout(text: string): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>();
  const onError = (): void => resolve(false);
  // program.ts does not end the command if this listener exists.
  process.stdout.once("error", onError);
  process.stdout.write(text, (error) => {
    if (error instanceof Error) return;
    process.stdout.off("error", onError);
    resolve(true);
  });
  return promise;
}

/** Leak scanners know the prefix; shorter secrets can be guessed. */
const ACCEPTED = /^sk-.{16,}$/;

export interface GivenSecretFlags {
  readonly secret?: string;
  /** Keys of an old gateway may have another form. */
  readonly force?: true;
}

function checkSecret(text: string, force = false): string | undefined {
  try {
    readSecretText(text);
  } catch (error) {
    return `The secret cannot be used: ${messageOf(error)}.`;
  }
  if (force || ACCEPTED.test(text)) return undefined;
  return "The secret cannot be used: expected `sk-` and at least 16 more characters (or --force).";
}

export async function readGivenSecret({ secret, force }: GivenSecretFlags): Promise<string | null> {
  if (secret === undefined) return force === true ? refuseUsage("--force needs --secret.") : null;
  if (secret !== "-") refuseUsage("--secret accepts only `-`, for stdin: other users can see arguments.");
  const check = (answer: string) => checkSecret(answer, force);
  const text = canPrompt()
    ? await askSecret({ message: "The key's secret", check })
    : (await readAll()).trim();
  const complaint = check(text);
  return complaint === undefined ? text : refuseUsage(complaint);
}
