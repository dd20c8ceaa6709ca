// `gateway recordings`.

import { call, type CommandRow, type Parameter } from "../cli/terminal/command.ts";
import { list } from "../cli/terminal/listing.ts";
import { JSON_FORM, LEDGER, YES } from "./flags.ts";

const RECORDING: Parameter = ["<name>", "the recording's name, or the path of its folder"];

export const RECORDINGS_ROW: CommandRow = {
  about: "list, show and remove recordings of requests and answers",
  examples: ["gateway recordings list  # what was recorded, and how large it is"],
  commands: {
    list: {
      about: "show the recordings beside the ledger",
      flags: [JSON_FORM, LEDGER],
      examples: ["gateway recordings list --json  # for scripts"],
      run: list(
        async () => (await import("../cli/money/recordings.ts")).showRecordings,
        [
          ["RECORDING", "name", "text", { name: true }],
          ["EXCHANGES", "exchanges", "count"],
          ["SIZE", "bytes", "bytes"],
          ["LAST USED", "last_used", "ago"],
        ],
      ),
    },
    show: {
      about: "list the requests of a recording",
      args: [RECORDING],
      flags: [JSON_FORM, LEDGER],
      examples: ["gateway recordings show agent-test  # one line for each request"],
      run: list(
        async () => (await import("../cli/money/recordings.ts")).showRecording,
        [
          ["#", "place", "count"],
          ["TIME", "time", "second"],
          ["REQUEST", "request", "text", { name: true }],
          ["MODEL", "model", "text", { spare: 1 }],
          ["STATUS", "status", "count"],
          ["CHUNKS", "chunks", "count", { spare: 2 }],
          ["TIME", "duration_ms", "ms", { spare: 3 }],
          ["COST $", "charge_usd", "usd"],
        ],
      ),
    },
    remove: {
      about: "remove recordings with all their prompts and answers",
      args: [["<names...>", "the recordings' names"]],
      flags: [YES, LEDGER],
      examples: ["gateway recordings remove agent-test --yes  # without a prompt"],
      run: call(async () => (await import("../cli/money/recordings.ts")).dropRecordings),
    },
  },
};
