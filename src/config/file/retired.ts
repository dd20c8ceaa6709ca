// Settings and commands of earlier versions.
// A setting that guarded something is refused, any other ignored.

import type { Path } from "../yaml/source.ts";

interface RetiredSetting {
  /** `*`: any name or list item. */
  readonly place: string;
  /** Absent: any value. */
  readonly values?: readonly unknown[];
  readonly isGuard?: true;
  readonly text: string;
}

const LIMITS = ["keys.*.limits", "groups.*.limits"];

export const RETIRED_SETTINGS: readonly RetiredSetting[] = [
  ...LIMITS.flatMap((limits): RetiredSetting[] => [
    {
      place: `${limits}.strict`,
      values: [true, "true"],
      isGuard: true,
      text:
        "was removed: spending may now reach twice the limit, or the limit plus one request. " +
        "Remove the line, and lower the limit or set `concurrent_requests: 1`",
    },
    {
      place: `${limits}.strict`,
      values: [false, "false"],
      text: "has no effect any more. Remove it",
    },
    {
      place: `${limits}.agents`,
      isGuard: true,
      text:
        "was removed: remove the line, and set `usd_per_session`, " +
        "`requests_per_minute_per_session` or `concurrent_requests`",
    },
  ]),
  {
    place: "groups.*.other_paths",
    values: ["forward"],
    isGuard: true,
    text:
      "`forward` was removed: name the paths that go upstream, " +
      "as in `other_paths: [/v1/files]`, or remove the line",
  },
  {
    place: "ledger.sync",
    values: ["always"],
    isGuard: true,
    text: "was removed: a power cut can cost the lines of the last 100 ms. Remove the line to accept that",
  },
  {
    place: "ledger.sync",
    values: ["batch", "never"],
    text: "has no effect: lines are brought to the disk together, within 100 ms. Remove it",
  },
  {
    place: "ledger.rotate.size",
    text: "has no effect: a new file is begun each month (`monthly: true`) or never. Remove it",
  },
  { place: "channels.*.balance", text: "has no effect: sellers are not asked for balances. Remove it" },
  { place: "channels.*.credit", text: "has no effect: credits are not counted. Remove it" },
  {
    place: "channels.*.warm",
    text: "has no effect: `warm` of the config decides for all channels. Remove it",
  },
];

const ENV_TOOLS = ["qwen", "copilot", "continue", "cline"];

export const RETIRED_COMMANDS: Readonly<Record<string, string>> = {
  console: "use the page (`gateway open`) and the commands (`gateway --help`)",
  "import cliproxy": "write the config with `gateway init` and `gateway channels add`",
  upgrade: "take a newer version with npm, Homebrew, Scoop, or a download with signed checksums",
  "keys import":
    "give the secrets one by one: " +
    "`gateway keys add --name NAME --group GROUP --secret - --force`, in a loop of the shell",
  "keys metrics": "set `metrics: all` on the key in the config file",
  "recordings export": "`gateway recordings show NAME --json` prints each request",
  ...Object.fromEntries(
    ENV_TOOLS.map((tool) => [`run ${tool}`, `\`gateway env ${tool}\` prints its settings, and you start it`]),
  ),
  reconcile:
    "`gateway usage --history --both` shows what only the logs or " +
    "only the ledger have, and `gateway usage` the costs that sellers named",
  export:
    "`otlp:` in the config sends a span for each request; " +
    "the past is in `gateway usage --csv` and in the ledger, which is JSONL",
  "ledger tail":
    "`gateway serve` logs each request, `gateway top` shows the last ones, and the ledger is a text file",
  "prices diff": "`gateway prices update --dry-run` shows what would change, and writes nothing",
  "sessions diff": "compare what `gateway sessions show` prints of the two",
};

export function removeRetired(tree: unknown) {
  return RETIRED_SETTINGS.flatMap(({ place, values, isGuard = false, text }) =>
    removeFrom(tree, place.split("."), values).map((path) => ({
      path,
      message: text,
      isGuard,
    })),
  );
}

function removeFrom(node: unknown, steps: readonly string[], values?: readonly unknown[]): Path[] {
  const [step, ...rest] = steps;
  if (typeof node !== "object" || node === null) return [];
  const entries = Object.entries(node).filter(([name]) => step === "*" || step === name);
  return entries.flatMap(([name, child]): Path[] => {
    const own = Array.isArray(node) ? Number(name) : name;
    if (rest.length > 0) return removeFrom(child, rest, values).map((path) => [own, ...path]);
    if (values?.includes(child) === false) return [];
    Reflect.deleteProperty(node, name);
    return [[own]];
  });
}

/** Null: the command never existed. */
export function explainRetired(words: string): string | null {
  const instead = Object.hasOwn(RETIRED_COMMANDS, words) ? RETIRED_COMMANDS[words] : undefined;
  return instead === undefined ? null : `\`gateway ${words}\` was removed: ${instead}`;
}
