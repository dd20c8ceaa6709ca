// Where there is no config file yet and somebody can be asked, one can be written at once.

import { findConfig, hasLocalConfig, placeConfig } from "../../config/find.ts";
import { ConfigError } from "../../config/problems.ts";
import { init } from "./init-run.ts";
import { askYes, canAsk } from "../terminal.ts";

/** Where the config file is. */
export async function locateConfig(flag: string | undefined): Promise<string> {
  try {
    return findConfig(flag, process.env);
  } catch (error) {
    if (!(error instanceof ConfigError) || !canAsk()) throw error;
    // Its owner may want that one, and a new one would be in its way.
    if (hasLocalConfig(placeConfig(flag, process.env))) throw error;
    if (!(await askYes("There is no config file yet. Write one now, as `gateway init` does?", true)))
      throw error;
    await init({});
    return findConfig(flag, process.env);
  }
}
