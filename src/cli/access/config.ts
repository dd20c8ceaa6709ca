// What commands need that read or change the config. This module loads zod and yaml,
// which costs start-up time: do not import it from the files that declare flags.

import type { Group } from "../../config/catalog.ts";
import { formatMoment } from "../../config/changes/names.ts";
import { type Loaded, loadConfig } from "../../config/file/load.ts";
import { findConfig } from "../../config/file/find.ts";

export interface ConfigFlags {
  readonly config?: string;
}

/** Accepts unset variables, because these commands send nothing upstream. */
export function openConfig(flags: ConfigFlags): Loaded {
  return loadConfig(findConfig(flags.config, process.env), process.env, { missing: "keep" });
}

/** For people. In UTC, like the dates in the file. */
export function formatDay(moment: Date | null): string {
  if (moment === null) return "";
  return formatMoment(moment).replace("T00:00:00Z", "").replace("T", " ").replace("Z", " UTC");
}

export function describeGroup({ platform, multiplier }: Group): string {
  return `${platform}, ×${multiplier}`;
}
