// Bugs that the simulator must find. They were chosen by somebody who had read the product's source and docs, and not the
// simulator. Each replaces one text of the source, in memory. The text may be in any file, and its white space may differ,
// so that a bug survives moves, renames and new line breaks. If the text is gone, the name says what to break instead.

import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Change } from "../world/bundle.ts";

export interface Bug {
  /** What is wrong with the gateway. */
  readonly name: string;
  readonly from: string;
  readonly to: string;
  /** Of a thousand runs with random seeds, how many show it. `planted/main.ts --rate` counts that. 0: not measured yet. */
  readonly perThousand: number;
}

/** How likely it was that so many runs find each bug, the least likely first. */
export function describeChances(runs: number): string[] {
  const chances = BUGS.filter(({ perThousand }) => perThousand > 0).map(({ name, perThousand }) => ({
    name,
    chance: 1 - (1 - perThousand / 1000) ** runs,
  }));
  return chances
    .toSorted((a, b) => a.chance - b.chance)
    .map(({ name, chance }) => `${(100 * chance).toFixed(0).padStart(5)} %  ${name}`);
}

export const BUGS: readonly Bug[] = [
  {
    name: "a POST is sent again when a reused connection dies",
    from: "!this.#answered && isSafe(exchange.method)",
    to: "!this.#answered",
    perThousand: 300,
  },
  {
    name: "the next channel is tried after an answer had begun",
    from: "hasLeft(failure) || failure.fault.answered",
    to: "hasLeft(failure)",
    perThousand: 175,
  },
  {
    name: "an idle connection is used without a look at what came on it",
    from: "if (spoilt && this.#wasIdle) return this.#leave(exchange);",
    to: "",
    perThousand: 7,
  },
  {
    name: "a cancelled request stays in the queue for a connection",
    from: "this.#waiting.delete(exchange); pending.dial.cancel();",
    to: "pending.dial.cancel();",
    perThousand: 100,
  },
  {
    name: "a socket stays paused after a full read",
    from: "if (!this.#isHeld) this.#socket.resume(); }); }",
    to: "}); }",
    perThousand: 6,
  },
  {
    name: "a file is closed while its sync runs",
    from: "if (this.#syncing === 0) closeSync(this.#fd);",
    to: "closeSync(this.#fd);",
    perThousand: 8,
  },
  {
    name: "a rotated file is never closed",
    from: "this.#lines.close(); this.#lines = file;",
    to: "this.#lines = file;",
    perThousand: 175,
  },
  {
    name: "rotated files are sorted by name: .10 comes before .2",
    from: "a.number - b.number",
    to: "(a.path < b.path ? -1 : 1)",
    perThousand: 100,
  },
  {
    name: "`sync: always` brings only the journal to the disk",
    from: "[this.#lines, ...journals].map",
    to: "[...journals].map",
    perThousand: 100,
  },
  {
    name: "recovery removes the line before a torn one, too",
    from: "if (end < size) cut(path, fd, end);",
    to: "if (end < size) cut(path, fd, last === null ? end : end - JSON.stringify(last).length - 1);",
    perThousand: 14,
  },
  {
    name: "all sessions share one limit of requests a minute",
    from: "openFlight(`${id} ${session}`,",
    to: "openFlight(`${id} of a session`,",
    perThousand: 150,
  },
  {
    name: "a WebSocket keeps the catalog of its first response",
    from: "admit(r, catalog); r.overrides = catalog.prices;",
    to: "admit(r, ((this as any).first ??= catalog)); r.overrides = catalog.prices;",
    perThousand: 15,
  },
  {
    name: "a background response is charged on the terms of the request that fetches it",
    from: "r, owner, { open: true }",
    to: "r, owner, { model: r.model, candidates: r.candidates, open: true }",
    perThousand: 125,
  },
  {
    name: "memory for large bodies is given back twice",
    from: "this.#left += held - to; held = to;",
    to: "this.#left += held - to;",
    perThousand: 125,
  },
  {
    name: "a request that never left stays in the journal",
    from: "if (this.#open.delete(id)) this.#records.push(() => encodeDiscard(id));",
    to: "this.#open.delete(id);",
    perThousand: 33,
  },
  {
    name: "`failover.total` begins anew with each attempt",
    from: "return this.#deadline - performance.now();",
    to: "return ((this as any).all ??= this.#deadline - performance.now());",
    perThousand: 0,
  },
  {
    name: "an estimate counts on after the real usage has replaced it",
    from: "replaced: replaces === undefined ? null : {",
    to: "replaced: replaces === undefined || true ? null : {",
    perThousand: 6,
  },
  {
    name: "requests of a time to come count, when the clock was set back",
    from: "|| recent[0] > now)) recent.shift();",
    to: ")) recent.shift();",
    perThousand: 19,
  },
  {
    name: "enabling a channel leaves the cooldowns of its models",
    from: "if (!disabled) memory.models.clear();",
    to: "",
    perThousand: 0,
  },
  {
    name: "a changed config is applied at the first look",
    from: "content !== seen && content !== candidate && reading",
    to: "false && reading",
    perThousand: 0,
  },
  {
    name: "the memory of a large response is not given back when it is over",
    from: "this.#chunks = []; this.#memory?.free();",
    to: "this.#chunks = [];",
    perThousand: 0,
  },
];

const ROOT = join(import.meta.dir, "../../..");

/** The change that plants the bug. A sentence: why it cannot be planted. */
export function findPlace({ from, to }: Bug): Change | string {
  const pattern = new RegExp(
    from
      .split(/\s+/)
      .map((part) => RegExp.escape(part))
      .join("\\s+"),
    "g",
  );
  const files = readdirSync(join(ROOT, "src"), { recursive: true, encoding: "utf8" });
  const places = files
    .filter((name) => name.endsWith(".ts"))
    .flatMap((name): Change[] => {
      const file = join("src", name);
      const texts = readFileSync(join(ROOT, file), "utf8").match(pattern) ?? [];
      return texts.map((text) => ({ file, from: text, to }));
    });
  const [place] = places;
  return place !== undefined && places.length === 1
    ? place
    : `its text is in the source ${places.length} times: write it anew, so that it does what its name says`;
}
