// The shells' side of completions: each asks `gateway __complete` and shows what it says. Nothing is known here.

import bash from "./completions/bash.txt" with { type: "text" };
import fish from "./completions/fish.txt" with { type: "text" };
import zsh from "./completions/zsh.txt" with { type: "text" };

export const SCRIPTS = { bash, zsh, fish } as const;
