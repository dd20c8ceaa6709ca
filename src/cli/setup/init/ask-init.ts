// Finds the config. On a terminal without a config, offers to write one.

import { findConfig, hasLocalConfig, placeConfig } from "../../../config/file/find.ts";
import { ConfigError } from "../../../config/yaml/problems.ts";
import { askYes, canPrompt } from "../../terminal/terminal.ts";

/** The path of the config file. */
export async function findOrCreateConfig(flag: string | undefined): Promise<string> {
  try {
    return findConfig(flag, process.env);
  } catch (error) {
    if (!(error instanceof ConfigError) || !canPrompt()) throw error;
    // The user may want to name that file instead.
    if (hasLocalConfig(placeConfig(flag, process.env))) throw error;
    if (!(await askYes("There is no config file yet. Write one now, as `gateway init` does?", true)))
      throw error;
    const { init } = await import("./init.ts");
    await init({});
    return findConfig(flag, process.env);
  }
}
