// The tools that can use the gateway, tested with released versions.

import { didYouMean } from "../../lib/text/nearest.ts";
import { PLATFORMS } from "../../config/schema.ts";
import { PLATFORM_ROWS, type ToolName } from "../../dialects/platforms.ts";
import { refuseUsage } from "../terminal/terminal.ts";
import { claude } from "./claude.ts";
import { codex } from "./codex.ts";
import { APPS, cline, continueCli, copilot, qwen } from "./env-tools.ts";
import { gemini } from "./gemini.ts";
import { opencode } from "./opencode.ts";
import { pi } from "./pi.ts";
import { ANTHROPIC_HEADERS, OPENAI_HEADERS, rootOf, type Tool, type ToolRow } from "./tool.ts";

const ROWS: Readonly<Record<ToolName, ToolRow>> = {
  claude,
  codex,
  gemini,
  opencode,
  qwen,
  copilot,
  pi,
  continue: continueCli,
  cline,
  openai: {
    title: "the OpenAI SDK",
    program: null,
    misleading: ["OPENAI_CUSTOM_HEADERS"],
    headers: OPENAI_HEADERS,
    connect: (connection) => ({
      env: {
        OPENAI_BASE_URL: `${rootOf(connection)}/v1`,
        OPENAI_API_BASE: `${rootOf(connection)}/v1`,
        OPENAI_API_KEY: connection.secret,
      },
      args: [],
    }),
  },
  anthropic: {
    title: "the Anthropic SDK",
    program: null,
    misleading: ["ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_CUSTOM_HEADERS"],
    headers: ANTHROPIC_HEADERS,
    connect: (connection) => ({
      env: { ANTHROPIC_BASE_URL: rootOf(connection), ANTHROPIC_API_KEY: connection.secret },
      args: [],
    }),
  },
  google: {
    title: "the Google GenAI SDK",
    program: null,
    misleading: ["GEMINI_API_KEY", "GOOGLE_GENAI_USE_ENTERPRISE", "GOOGLE_GENAI_USE_VERTEXAI"],
    connect: (connection) => ({
      // The SDK prefers this variable to GEMINI_API_KEY.
      env: { GOOGLE_GEMINI_BASE_URL: rootOf(connection), GOOGLE_API_KEY: connection.secret },
      args: [],
    }),
  },
};

export const TOOLS: ReadonlyMap<string, Tool> = new Map(
  Object.entries(ROWS).map(([name, row]): [string, Tool] => {
    const platforms = PLATFORMS.filter((each) => PLATFORM_ROWS[each].tools.some((tool) => tool === name));
    return [name, { name, platforms, misleading: [], ...row }];
  }),
);

export function findTool(name: string, known: readonly string[] = [...TOOLS.keys()]): Tool {
  const app = APPS.get(name);
  if (app !== undefined) refuseUsage(`\`gateway env ${name}\` prints what to enter in ${app.title}.`);
  const near = didYouMean(name, known);
  return TOOLS.get(name) ?? refuseUsage(`There is no tool "${name}"${near}. Known: ${known.join(", ")}.`);
}
