// Qwen Code: an OpenAI or Anthropic client by variables. A flag selects which, whatever its settings file says.

import { MISLEADING } from "../environment/misleading.ts";
import { chooseMainModel } from "./model-choice.ts";
import { ANTHROPIC_HEADERS, listPlatforms, mainMakerOf, OPENAI_HEADERS, rootOf, type Tool } from "./tool.ts";

export const qwen: Tool = {
  name: "qwen",
  title: "Qwen Code",
  program: { name: "qwen", install: "npm install -g @qwen-code/qwen-code" },
  platforms: listPlatforms("qwen"),
  misleading: MISLEADING.qwen,
  ignoresNoProxy: true,
  needsModels: true,
  headers: ({ platform }) => (mainMakerOf(platform) === "openai" ? OPENAI_HEADERS : ANTHROPIC_HEADERS),
  connect: (connection) => {
    const [kind, prefix, base] =
      mainMakerOf(connection.platform) === "openai"
        ? ["openai", "OPENAI", `${rootOf(connection)}/v1`]
        : ["anthropic", "ANTHROPIC", rootOf(connection)];
    const model = chooseMainModel(connection.models);
    return {
      env: {
        [`${prefix}_BASE_URL`]: base,
        [`${prefix}_API_KEY`]: connection.secret,
        ...(model !== null && { [`${prefix}_MODEL`]: model }),
      },
      args: ["--auth-type", kind],
    };
  },
};
