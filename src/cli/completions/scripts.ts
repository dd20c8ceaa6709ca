// `gateway completions`: the shells' side. Each script runs `gateway __complete` and shows its lines.

import bash from "./bash.txt" with { type: "text" };
import fish from "./fish.txt" with { type: "text" };
import zsh from "./zsh.txt" with { type: "text" };

const SCRIPTS = { bash, zsh, fish } as const;

export function printScript(shell: keyof typeof SCRIPTS): void {
  process.stdout.write(SCRIPTS[shell]);
}
