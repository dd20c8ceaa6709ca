// A finding of `gateway doctor`, and what the checks look at.

import type { LoadedConfig } from "../../config/file/load.ts";
import type { FoundGateway } from "../access/running.ts";
import { keepConfig, keepConfigs } from "../terminal/own-command.ts";

export interface DoctorFinding {
  readonly check: string;
  readonly state: "ok" | "note" | "wrong";
  readonly detail: string;
  readonly fix: string | null;
}

export function good(check: string, detail: string): DoctorFinding {
  return { check, state: "ok", detail, fix: null };
}

export function note(check: string, detail: string, fix: string | null = null): DoctorFinding {
  return {
    check,
    state: "note",
    detail: keepConfigs(detail),
    fix: fix && keepConfig(fix),
  };
}

export function bad(check: string, detail: string, fix: string): DoctorFinding {
  return { ...note(check, detail, fix), state: "wrong" };
}

export interface Examined extends LoadedConfig {
  readonly running: FoundGateway | null;
  readonly isCopy: boolean;
}

type Findings = DoctorFinding | readonly DoctorFinding[] | null;

export type Check = (examined: Examined) => Findings | Promise<Findings>;
