// `gateway import`: writes a config from that of another gateway, and says what has no counterpart.

import { existsSync, readFileSync } from "node:fs";
import { stringify } from "yaml";
import { placeConfig } from "../../../config/file/find.ts";
import { checkConfigText } from "../../../config/file/load.ts";
import { getErrorMessage } from "../../../lib/errors.ts";
import { quoteWord } from "../../../lib/text/shell-word.ts";
import { escapeUnprintable } from "../../../lib/text/printable.ts";
import type { ListFlags } from "../../access/config.ts";
import { nameOwnCommand } from "../../terminal/own-command.ts";
import { fail, printJson, printNote, readGiven } from "../../terminal/terminal.ts";
import { addVariables, requireWritable } from "../env-file.ts";
import { refuseOverwrite, writeNew } from "../init/init.ts";
import { createDraft, describeDraft, type Draft } from "./draft.ts";
import { readCcr } from "./ccr.ts";
import { readCliproxy } from "./cliproxy.ts";
import { readLitellm } from "./litellm.ts";

interface Reader {
  readonly title: string;
  readonly parse: (text: string) => unknown;
  readonly read: (document: unknown, draft: Draft) => void;
}

const READERS = {
  ccr: { title: "claude-code-router", parse: Bun.JSONC.parse, read: readCcr },
  litellm: { title: "LiteLLM", parse: Bun.YAML.parse, read: readLitellm },
  cliproxy: { title: "CLIProxyAPI", parse: Bun.YAML.parse, read: readCliproxy },
} as const satisfies Record<string, Reader>;

export async function importConfig(
  kind: keyof typeof READERS,
  file: string,
  flags: ListFlags,
): Promise<void> {
  const path = placeConfig(flags.config, process.env);
  if (existsSync(path)) refuseOverwrite(path);
  const { title, parse, read } = READERS[kind];
  const draft = createDraft();
  read(parseFile(file, parse), draft);
  if (Object.keys(draft.channels).length === 0)
    fail(`${file} has no upstream that the gateway can use, so nothing was written.${listLost(draft)}`);
  const text = `# Written by \`gateway import ${kind}\`.\n${stringify(describeDraft(draft), { lineWidth: 0 })}`;
  const { catalog } = checkConfigText(text, path, process.env, { missing: "keep" });
  requireWritable(path, draft.variables);
  writeNew(path, text);
  await addVariables(path, draft.variables);
  if (flags.json === true)
    printJson({
      config: path,
      channels: [...catalog.channels.keys()],
      groups: [...catalog.groups.keys()],
      keys: [...catalog.keys.keys()],
      no_counterpart: draft.lost,
    });
  printNote(`Wrote ${path} from the config of ${title}.${listLost(draft)}`);
  const config = path === placeConfig(undefined, process.env) ? "" : ` --config ${quoteWord(path)}`;
  printNote(`Next: ${nameOwnCommand()} doctor${config}`);
}

function parseFile(file: string, parse: Reader["parse"]): unknown {
  let text: string;
  try {
    text = readFileSync(file, "utf8");
  } catch (error) {
    return fail(`${file} cannot be read: ${getErrorMessage(error)}.`);
  }
  // The parser's message may repeat the text, which holds secrets.
  return readGiven(() => {
    try {
      return parse(text);
    } catch {
      throw new Error("it cannot be parsed");
    }
  }, file);
}

function listLost({ lost }: Draft): string {
  if (lost.length === 0) return "";
  return ` No counterpart:${lost.map((each) => `\n  ${escapeUnprintable(each)}`).join("")}`;
}
