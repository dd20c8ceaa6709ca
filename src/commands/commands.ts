// All commands as data. A command's code is loaded when it runs.

import { call, type CommandRow, type CommandTable } from "../cli/terminal/command.ts";
import { LOOK } from "./look.ts";
import { MANAGE } from "./manage.ts";
import { SET_UP } from "./set-up.ts";
import { USE } from "./use.ts";

export const GATEWAY: CommandRow = {
  about: "One local gateway between your AI tools and the platforms that serve models.",
  flags: [["--config <file>", "the config file, for any command"]],
  examples: [
    "gateway serve --demo  # try it, without an account",
    "gateway init && gateway serve  # use your own accounts",
    "gateway run claude  # start a tool that uses the gateway",
  ],
  commands: {
    ...addHeading("Use:", USE),
    ...addHeading("Look:", LOOK),
    ...addHeading("Manage:", MANAGE),
    ...addHeading("Set up:", SET_UP),
    __overview: {
      about: "",
      hidden: true,
      examples: [],
      run: call(() => import("../cli/doctor/overview.ts"), "showOverview"),
    },
    __complete: {
      about: "",
      hidden: true,
      args: [["[words...]", ""]],
      examples: [],
      run: async (words) => (await import("../cli/completions/complete.ts")).complete(GATEWAY, words),
    },
  },
};

function addHeading(heading: string, commands: CommandTable): CommandTable {
  return Object.fromEntries(Object.entries(commands).map(([name, row]) => [name, { ...row, heading }]));
}
