// Subscription logins of tools (Claude Pro or Max, ChatGPT, Google). Through the gateway the tool uses metered API
// billing instead, which the user must agree to once.

import { mkdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { z } from "zod";
import { stateFolder } from "../../config/file/find.ts";
import type { Environment } from "../../config/yaml/expand.ts";
import { getField, isObject, parseJson } from "../../lib/json/json.ts";
import { readOwn, replaceFile } from "../../lib/files/own-file.ts";
import { askYes, canPrompt, fail, refuseUsage } from "../terminal/terminal.ts";
import { homeOf, readSettings, type Tool } from "./tool.ts";

type FindLogin = (env: Environment, home: string) => string | null;

const FINDERS: Readonly<Record<string, FindLogin>> = {
  claude: (env, home) => {
    const own = env["CLAUDE_CONFIG_DIR"];
    const account = getField(readSettings(join(own || home, ".claude.json")), "oauthAccount");
    const login = getField(
      readSettings(join(own || join(home, ".claude"), ".credentials.json")),
      "claudeAiOauth",
    );
    return isObject(account) || isObject(login) ? "Claude (Pro, Max or another plan)" : null;
  },
  codex: (env, home) => {
    const auth = readSettings(join(env["CODEX_HOME"] || join(home, ".codex"), "auth.json"));
    return isObject(getField(auth, "tokens")) ? "ChatGPT" : null;
  },
  gemini: (env, home) => {
    const folder = join(env["GEMINI_CLI_HOME"] || home, ".gemini");
    return isObject(readSettings(join(folder, "oauth_creds.json"))) ? "Google" : null;
  },
  opencode: (env, home) => {
    const data = env["XDG_DATA_HOME"] || join(home, ".local/share");
    const auth = readSettings(join(data, "opencode/auth.json"));
    const logins = Object.entries(isObject(auth) ? auth : {}).filter(
      ([, login]) => getField(login, "type") === "oauth",
    );
    return logins.length === 0 ? null : logins.map(([provider]) => provider).join(" and ");
  },
};

/** What the tool is signed in to with a subscription; null when it is not. */
export function findSubscriptionLogin({ name }: Tool, env: Environment): string | null {
  return FINDERS[name]?.(env, homeOf(env)) ?? null;
}

/** Asks once per tool. Without a terminal, --yes agrees. `plan`: a group whose plan would pay; null: none. */
export async function agreeToMeteredBilling(
  tool: Tool,
  { yes, plan }: { readonly yes: boolean; readonly plan: string | null },
  env: Environment,
): Promise<void> {
  const login = findSubscriptionLogin(tool, env);
  if (login === null) return;
  const path = join(stateFolder(env), "agreed-tools.json");
  const agreed = readAgreed(path);
  if (agreed.includes(tool.name)) return;
  const notice =
    `${tool.title} is signed in to ${login} with a subscription. Through the gateway it uses your API credential ` +
    "instead, and every request is billed by its tokens. The login stays as it is.";
  if (!yes) {
    const instead = plan === null ? "" : ` For the plan, add --group ${plan}.`;
    if (!canPrompt())
      refuseUsage(`${notice} If that is what you want, add --yes before the tool's name.${instead}`);
    if (!(await askYes(`${notice} Go on?`))) fail("Nothing was started.");
  }
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  replaceFile(path, `${JSON.stringify([...agreed, tool.name])}\n`);
}

function readAgreed(path: string): string[] {
  return z.array(z.string()).safeParse(parseJson(readOwn(path) ?? "")).data ?? [];
}
