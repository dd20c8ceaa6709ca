// Qwen Code: an OpenAI or Anthropic client by variables. A flag selects which, whatever its settings file says. Its
// OpenAI client reads no variable with header fields, so the label comes from a file of defaults, which the user's own
// settings may override.

import { join } from "node:path";
import type { Environment } from "../../../config/yaml/expand.ts";
import { MISLEADING } from "../environment/misleading.ts";
import { chooseMainModel } from "./model-choice.ts";
import { findText, homeOf, type Overlay } from "./overlay.ts";
import {
  ANTHROPIC_HEADERS,
  type Connection,
  listHeaders,
  listPlatforms,
  mainMakerOf,
  OPENAI_HEADERS,
  sdkBaseOf,
  type Tool,
} from "./tool.ts";

export const qwen: Tool = {
  name: "qwen",
  title: "Qwen Code",
  program: { name: "qwen", install: "npm install -g @qwen-code/qwen-code" },
  platforms: listPlatforms("qwen"),
  isForEnv: true,
  misleading: MISLEADING.qwen,
  ignoresNoProxy: true,
  needsModels: true,
  findOwnModel: (env) =>
    findText(["model", "name"], [".qwen/settings.json", join(homeOf(env), ".qwen/settings.json")]),
  headers: (connection) => (isOpenAi(connection) ? OPENAI_HEADERS : ANTHROPIC_HEADERS),
  overlay: labelOverlay,
  connect: (connection) => {
    const [kind, prefix] = isOpenAi(connection) ? ["openai", "OPENAI"] : ["anthropic", "ANTHROPIC"];
    const model = chooseMainModel(connection.models, connection.ownModel);
    return {
      env: {
        [`${prefix}_BASE_URL`]: sdkBaseOf(connection),
        [`${prefix}_API_KEY`]: connection.secret,
        ...(model !== null && { [`${prefix}_MODEL`]: model }),
      },
      args: ["--auth-type", kind],
    };
  },
};

function isOpenAi({ platform }: Connection): boolean {
  return mainMakerOf(platform) === "openai";
}

/** The variable that names the file of defaults, and the file without it. */
const DEFAULTS = { variable: "QWEN_CODE_SYSTEM_DEFAULTS_PATH", path: "/etc/qwen-code/system-defaults.json" };

function labelOverlay(connection: Connection): Overlay {
  const headers = isOpenAi(connection) ? listHeaders(connection) : null;
  const placeOf = (env: Environment): string => env[DEFAULTS.variable] || DEFAULTS.path;
  return {
    find: (env) => {
      if (headers === null) return null;
      const path = placeOf(env);
      return {
        path,
        content: { model: { generationConfig: { customHeaders: headers } } },
        advice: `reads the label's header field from ${path}`,
      };
    },
  };
}
