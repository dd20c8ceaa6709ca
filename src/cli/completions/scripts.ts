// The shells' side of completions: each script runs `gateway __complete` and shows its lines.

import bash from "./bash.txt" with { type: "text" };
import fish from "./fish.txt" with { type: "text" };
import zsh from "./zsh.txt" with { type: "text" };

export const SCRIPTS = { bash, zsh, fish } as const;
