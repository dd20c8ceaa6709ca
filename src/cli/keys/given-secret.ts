// Secrets that the user brings along: what a new key accepts, and how `--secret -` reads one.

import { getErrorMessage } from "../../lib/errors.ts";
import { readSecretText } from "../../config/yaml/scalars.ts";
import { askSecret, canPrompt, readAll, refuseUsage } from "../terminal/terminal.ts";

/** Clients and leak scanners recognise keys by the prefix; shorter secrets can be guessed. */
const ACCEPTED = /^sk-.{16,}$/;

export interface GivenSecretFlags {
  readonly secret?: string;
  /** Accept any text: keys of an old gateway may have another form. */
  readonly force?: true;
}

/** Why the text cannot be a new key's secret; undefined when it can. */
export function checkSecret(text: string, force = false): string | undefined {
  try {
    readSecretText(text);
  } catch (error) {
    return `The secret cannot be used: ${getErrorMessage(error)}.`;
  }
  if (force || ACCEPTED.test(text)) return undefined;
  return "The secret cannot be used: expected `sk-` and at least 16 more characters (--force accepts an old key).";
}

/** From stdin only: every process of the machine can see the arguments. Null: no secret was given. */
export async function readGivenSecret({ secret, force }: GivenSecretFlags): Promise<string | null> {
  if (secret === undefined)
    return force === true
      ? refuseUsage("--force needs --secret: a generated secret is always accepted.")
      : null;
  if (secret !== "-")
    refuseUsage("--secret accepts only `-` and reads the secret from stdin: other users can see arguments.");
  const check = (answer: string) => checkSecret(answer, force);
  const text = canPrompt()
    ? await askSecret({ message: "The key's secret", check })
    : (await readAll()).trim();
  const complaint = check(text);
  return complaint === undefined ? text : refuseUsage(complaint);
}
