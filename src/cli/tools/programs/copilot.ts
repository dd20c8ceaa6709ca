// GitHub Copilot CLI with a provider of one's own ("BYOK"), which needs no GitHub login: `copilot help providers`.

import { MISLEADING } from "../environment/misleading.ts";
import { chooseMainModel } from "./model-choice.ts";
import { type HeaderVariable, listPlatforms, mainMakerOf, sdkBaseOf, type Tool } from "./tool.ts";

/** Copilot's words for them. */
const WIRE_APIS = { responses: "responses", chat: "completions" } as const;

const COPILOT_HEADERS: HeaderVariable = { name: "COPILOT_PROVIDER_HEADERS", separator: "\n" };

export const copilot: Tool = {
  name: "copilot",
  title: "GitHub Copilot CLI",
  program: { name: "copilot", install: "npm install -g @github/copilot" },
  platforms: listPlatforms("copilot"),
  isForEnv: true,
  misleading: MISLEADING.copilot,
  needsModels: true,
  findOwnModel: (env) => env["COPILOT_MODEL"] || null,
  headers: () => COPILOT_HEADERS,
  connect: (connection) => {
    const isOpenAi = mainMakerOf(connection.platform) === "openai";
    const model = chooseMainModel(connection.models, connection.ownModel);
    return {
      env: {
        COPILOT_PROVIDER_BASE_URL: sdkBaseOf(connection),
        COPILOT_PROVIDER_TYPE: isOpenAi ? "openai" : "anthropic",
        COPILOT_PROVIDER_WIRE_API: WIRE_APIS[connection.speaksChat === true ? "chat" : "responses"],
        COPILOT_PROVIDER_TRANSPORT: "http",
        COPILOT_PROVIDER_API_KEY: connection.secret,
        ...(model !== null && { COPILOT_MODEL: model }),
      },
      args: [],
    };
  },
};
