// Arguments and flags of several commands.

import type { Parameter } from "../cli/terminal/command.ts";

export const JSON_FORM: Parameter = ["--json", "one JSON document on stdout"];
export const LEDGER: Parameter = ["--ledger <file>", "read this ledger instead of the config's"];
export const UNREAD_CONFIG: Parameter = ["--config <file>", "accepted, but not read"];
export const UNTIL: Parameter = ["--until <date>", "the last day to include"];
export const YES: Parameter = ["--yes", "remove without a prompt"];
