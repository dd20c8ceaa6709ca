// The shells' side of completions: each asks `gateway __complete` and shows what it says. Nothing is known here.

import bash from "./bash.txt" with { type: "text" };
import fish from "./fish.txt" with { type: "text" };
import zsh from "./zsh.txt" with { type: "text" };

export const SCRIPTS = { bash, zsh, fish } as const;
