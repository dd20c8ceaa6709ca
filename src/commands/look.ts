// The commands that look at a gateway and its ledger.

import type { showModels } from "../cli/catalog/models.ts";
import type { ReportFlags } from "../cli/money/show.ts";
import type { HistoryFlags } from "../cli/money/history.ts";
import type { AsModelFlags } from "../cli/money/as-model.ts";
import { call, CONFIG, type CommandRow, type CommandTable, type Parameter } from "../cli/terminal/command.ts";
import { list } from "../cli/terminal/listing.ts";
import { JSON_FORM, LEDGER, UNTIL, YES } from "./flags.ts";

const models = () => import("../cli/catalog/models.ts");
const recordings = () => import("../cli/money/recordings.ts");
const sessions = () => import("../cli/money/sessions.ts");
const ledger = () => import("../cli/money/ledger.ts");
const reprice = () => import("../cli/money/reprice.ts");

const PERIOD: Parameter = [
  "[period]",
  "today, yesterday, week, month, last-week, last-month, 7d, 12h, 2w, 2026-11 or 2026-11-20",
];
const SPAN: readonly Parameter[] = [["--since <when>", "the period's beginning: 7d, 2026-11-20, …"], UNTIL];
const OF_KEY: Parameter = ["--key <name>", "only requests of this key"];
const OF_TOOL: Parameter = ["--tool <name>", "only requests of this tool, such as claude-code"];
const OF_LABEL: Parameter = ["--label <text>", "only requests with this label"];
const FILTERS: readonly Parameter[] = [
  OF_KEY,
  ["--group <name>", "only requests of this group"],
  ["--model <id>", "only requests for this model"],
  ["--channel <name>", "only requests through this channel"],
  OF_TOOL,
  ["--session <id>", "only requests of this session, or `last`"],
  OF_LABEL,
];
const OF_LEDGER: readonly Parameter[] = [LEDGER, CONFIG, ["--json", "JSON on stdout"]];

const DIMENSIONS =
  "hour day week month key group model channel tool version session agent label project".split(" ");

function addPeriod<T extends object>(period: string | undefined, flags: T): T & { readonly period?: string } {
  return period === undefined ? flags : { ...flags, period };
}

function addingPeriod<T extends object, R>(run: (flags: T & { readonly period?: string }) => R) {
  return (period: string | undefined, flags: T): R => run(addPeriod(period, flags));
}

type PricedModel = Awaited<ReturnType<typeof showModels>>["rows"][number];

function rateOf(kind: string) {
  return ({ price, price_source: source }: PricedModel) =>
    source === "free" ? source : price === null ? "?" : price[kind];
}

function nameChannels({ channels, converted }: PricedModel): string[] {
  return channels.map((name) => (converted.includes(name) ? `${name} (converted)` : name));
}

const RECORDING: Parameter = ["<name>", "the recording's name, or the path of its folder"];

const LIST_RECORDINGS: CommandRow = {
  about: "show the recordings next to the ledger",
  flags: [JSON_FORM, LEDGER],
  examples: ["gateway recordings list --json  # for scripts"],
  run: list(recordings, (found) => found.showRecordings, [
    ["RECORDING", "name"],
    ["EXCHANGES", "exchanges", "count"],
    ["SIZE", "bytes", "bytes"],
    ["LAST USED", "last_used", "ago"],
  ]),
};

const RECORDINGS: CommandRow = {
  ...LIST_RECORDINGS,
  about: "list, show and remove recordings of requests and answers",
  examples: ["gateway recordings list  # what was recorded"],
  commands: {
    list: LIST_RECORDINGS,
    show: {
      about: "list the requests of a recording",
      args: [RECORDING],
      flags: [JSON_FORM, LEDGER],
      examples: ["gateway recordings show agent-test  # one line for each request"],
      run: list(recordings, (found) => found.showRecording, [
        ["#", "place", "count"],
        ["TIME", "time", "second"],
        ["REQUEST", "request"],
        ["MODEL", "model", "text", { spare: 1 }],
        ["STATUS", "status", "count"],
        ["CHUNKS", "chunks", "count", { spare: 2 }],
        ["TIME", "duration_ms", "ms", { spare: 3 }],
        ["COST $", "charge_usd", "usd"],
      ]),
    },
    remove: {
      about: "remove recordings with all their prompts and answers",
      args: [["<names...>", "the recordings' names"]],
      flags: [YES, LEDGER],
      examples: ["gateway recordings remove agent-test --yes  # without a prompt"],
      run: call(recordings, "dropRecordings"),
    },
  },
};

export const LOOK: CommandTable = {
  top: {
    about: "watch the running gateway: streams, spending today, recent requests",
    flags: [["--json", "the current state, as JSON on stdout"], LEDGER],
    examples: ["gateway top  # watch until Ctrl-C", "gateway top --json | jq .streams  # for scripts"],
    run: call(() => import("../cli/live/top.ts"), "showTop"),
  },
  usage: {
    about: "show totals of the ledger: requests, tokens, official and charged USD",
    args: [PERIOD],
    flags: [
      [
        "--by <what>",
        "group by one word, or two with a comma, such as key,model",
        {
          choices: DIMENSIONS,
          // Commander's own check would refuse two words, such as key,model.
          read: (text) => text,
          default: "day",
        },
      ],
      ...FILTERS,
      ["--as <model>", "compare with the cost on this model"],
      ["--history", "read the agents' own logs, not the ledger"],
      ["--both", "with --history: count the ledger too, and each request once"],
      ...SPAN,
      ["--csv", "comma-separated values"],
      JSON_FORM,
      LEDGER,
    ],
    remark:
      "Days are those of `timezone`. Amounts are exact in --json and --csv. CACHED is the cache's share of the input. --as uses the prices of each day.",
    examples: [
      "gateway usage 7d  # the last week, day by day",
      "gateway usage 7d --by model --as claude-haiku-4-5  # on another model",
      "gateway usage --history --by project,model  # without a gateway",
      "gateway usage --by model --csv > usage.csv  # for a spreadsheet",
    ],
    run: async (period: string | undefined, flags: Partial<AsModelFlags> & HistoryFlags) => {
      const all = addPeriod(period, flags);
      if (flags.history === true || flags.both === true)
        return (await import("../cli/money/history.ts")).showHistory(all);
      if (flags.as !== undefined)
        return (await import("../cli/money/as-model.ts")).showAsModel({ ...all, as: flags.as });
      return (await import("../cli/money/usage.ts")).showUsage(all);
    },
  },
  sessions: {
    about: "show what each session of an agent has spent",
    args: [PERIOD],
    flags: [
      ["--all", "every session, not only the newest 20"],
      OF_TOOL,
      OF_LABEL,
      OF_KEY,
      ...SPAN,
      JSON_FORM,
      LEDGER,
    ],
    remark:
      "`inferred-…` is a session that no tool named: the requests of a key, tool and label until a pause of 30 minutes.",
    examples: [
      "gateway sessions  # the newest sessions",
      "gateway sessions show last  # the agents of the last session",
    ],
    run: async (period, flags) => (await sessions()).listSessionSpending(addPeriod(period, flags)),
    commands: {
      show: {
        about: "show the agents of a session: cost, and where caches were missed",
        args: [["<id>", "the session's id, its beginning, or `last`"]],
        flags: [["--turns", "list each request"], JSON_FORM, LEDGER],
        examples: ["gateway sessions show last  # the session of the last request"],
        run: call(sessions, "showSession"),
      },
    },
  },
  recordings: RECORDINGS,
  cache: {
    about: "show what prompts missed in caches, why, and what it cost",
    args: [PERIOD],
    flags: [...FILTERS, ...SPAN, JSON_FORM, LEDGER],
    remark: "MISSED tokens should have been read from the cache. COST: how much more they cost than a read.",
    examples: ["gateway cache today  # what was missed today, by session"],
    run: async (period: string | undefined, flags: ReportFlags) =>
      (await import("../cli/money/cache.ts")).showCache(addPeriod(period, flags)),
  },
  report: {
    about: "write a file about a session or a period, to show to others",
    args: [["[what]", "a session's id, `last`, or a period (default: 7d)"]],
    flags: [
      ["-o, --output <file>", "where to write it (default: gateway-report-TIME.html); - for stdout"],
      ["--markdown", "as Markdown on stdout, for an issue"],
      ["--labels", "with the labels of requests"],
      ...SPAN,
      JSON_FORM,
      LEDGER,
    ],
    remark:
      "It says what prompts missed in caches, what changed first, what that cost, and the ledger's anchor. It has no prompt, answer, secret, path, or name of a key or channel.",
    examples: [
      "gateway report last  # of the last session",
      "gateway report 7d --markdown | gh issue comment 123 -F -  # for an issue",
    ],
    run: call(() => import("../cli/money/report.ts"), "writeReport"),
  },
  context: {
    about: "show what a session's prompts consist of, in tokens and dollars",
    args: [["[session]", "the session's id, its beginning, or `last` (the default)"]],
    flags: [JSON_FORM, LEDGER],
    remark: "Shares are estimates, by the lengths of the parts.",
    examples: [
      "gateway context  # of the last session",
      "gateway context servers 30d  # what MCP servers cost in a month",
    ],
    run: call(() => import("../cli/money/context.ts"), "showContext"),
    commands: {
      servers: {
        about: "show what the tools of each MCP server cost",
        args: [PERIOD],
        flags: [...SPAN, JSON_FORM, LEDGER],
        examples: ["gateway context servers 30d  # of the last month"],
        run: addingPeriod(async (flags: ReportFlags) =>
          (await import("../cli/money/context.ts")).showServers(flags),
        ),
      },
    },
  },
  statusline: {
    about: "print one line for an agent's status bar",
    flags: [
      ["--format <text>", "your own text, with the fields below"],
      ["--session <id>", "the session, where stdin does not name it"],
      ["--key <name>", "the key whose limits are shown before the first request"],
      LEDGER,
    ],
    remark: [
      "`gateway run --statusline claude` puts it into Claude Code, for that run.",
      "Fields of --format; one without a value is empty:",
      "  {model}      the session's model",
      "  {session}    what the session has cost",
      "  {plan}       what a plan has paid of it, at official prices",
      "  {today}      what all requests of today have cost",
      "  {context}    the tokens of the last prompt, and its largest parts",
      "  {cached}     the share of the session's input from the cache",
      "  {left}       what is left of the nearest limit in USD",
      "  {limit}      the amount of that limit",
      "  {windows}    how much of a plan's windows is used",
      "  {rise}       by how much they rose in this session",
      "  {recording}  the recordings that are being written",
    ].join("\n"),
    examples: [
      "gateway statusline  # for `statusLine` in the settings of Claude Code",
      "gateway statusline --format 'today {today}'  # for other bars",
    ],
    run: call(() => import("../cli/money/statusline.ts"), "printStatusline"),
  },
  models: {
    about: "list the available models with their prices",
    flags: [
      ["--group <name>", "only the models of this group"],
      ["--key-name <name>", "only the models that this key can call"],
      JSON_FORM,
    ],
    examples: ["gateway models --group claude  # of one group"],
    run: list(models, (found) => found.showModels, [
      ["MODEL", "id"],
      ["GROUP", "group"],
      ["PLATFORM", "platform", "text", { spare: 5 }],
      ["MULTIPLIER", ({ multiplier }) => `×${multiplier}`, "text", { align: "right", spare: 3 }],
      ["INPUT $", rateOf("input"), "text", { align: "right" }],
      ["OUTPUT $", rateOf("output"), "text", { align: "right" }],
      ["CACHE READ $", rateOf("cache_read"), "text", { align: "right", spare: 1 }],
      ["CACHE WRITE $", rateOf("cache_write_5m"), "text", { align: "right", spare: 2 }],
      ["CHANNELS", nameChannels, "text", { spare: 4 }],
    ]),
    // With this, `models ls` means `models`.
    commands: {},
  },
  ledger: {
    about: "verify and explain the ledger of charges",
    examples: [
      "gateway ledger verify  # is every line there, and right?",
      "gateway ledger show req_01k…  # explain one charge",
    ],
    commands: {
      verify: {
        about: "recompute every amount, and check the chain of hashes",
        flags: [
          ...OF_LEDGER,
          ["--partial", "accept that the oldest files are missing"],
          ["--since <id|day>", "check from this line or day (in UTC) on"],
          ["--anchor <anchor>", "check that the ledger still has the lines of an anchor"],
        ],
        examples: [
          "gateway ledger verify  # exit status 1 if anything is wrong",
          "gateway ledger verify --ledger backup/ledger.jsonl  # check a copy",
        ],
        run: call(ledger, "verify"),
      },
      anchor: {
        about: "print an anchor to keep elsewhere, which proves later that no line was changed",
        flags: [...OF_LEDGER],
        examples: ["gateway ledger anchor  # the number of lines and the last hash"],
        run: call(ledger, "anchor"),
      },
      show: {
        about: "explain one request: usage × price, multiplier, rounding, attempts",
        args: [["<id>", "the x-request-id of the response, its beginning, or `last`"]],
        flags: [...OF_LEDGER, ["--key <name>", "with `last`: the last request of this key"]],
        examples: ["gateway ledger show req_01k…  # explain its charge"],
        run: call(ledger, "show"),
      },
      reprice: {
        about: "append corrections where a price was missing or has changed",
        args: [PERIOD],
        flags: [...OF_LEDGER, ...SPAN, ["--dry-run", "show what would change, and write nothing"]],
        examples: ["gateway ledger reprice 7d --dry-run  # show what would change"],
        run: list(reprice, ({ repriceLedger }) => addingPeriod(repriceLedger), [
          ["MODEL", "model"],
          ["REQUESTS", "requests", "count"],
          ["UNPRICED", "unpriced", "count"],
          ["WAS $", "was_usd", "exact"],
          ["NOW $", "now_usd", "exact"],
        ]),
      },
      accept: {
        about: "accept the ledger as it is, after a start has found a fault",
        flags: [...OF_LEDGER],
        examples: ["gateway ledger accept  # after `gateway ledger verify`"],
        run: call(reprice, "acceptLedger"),
      },
    },
  },
};
