// Field paths of the upstream's request → field paths of the client's request. An upstream's error about
// `input[3].output[0].file_data` then names the client's message.

import type { BridgeContext, ItemKind } from "../context.ts";
import { SHARED_NAMES } from "./fields.ts";

/** A pattern in a path, and its name in chat. */
type Renaming = readonly [RegExp, string];

const PART_RENAMINGS: readonly Renaming[] = [
  [/^(\[\d+\])\.image_url$/, "$1.image_url.url"],
  [/^(\[\d+\])\.detail$/, "$1.image_url.detail"],
  [/^(\[\d+\])\.(file_data|file_id|filename)$/, "$1.file.$2"],
];

const ITEM_RENAMINGS: Readonly<Record<ItemKind, readonly Renaming[]>> = {
  message: [],
  output: [
    [/^\.call_id$/, ".tool_call_id"],
    [/^\.output/, ".content"],
  ],
  function: [
    [/^\.call_id$/, ".id"],
    [/^\.(name|arguments)$/, ".function.$1"],
  ],
  custom: [
    [/^\.call_id$/, ".id"],
    [/^\.(name|input)$/, ".custom.$1"],
  ],
};

const FIELD_RENAMINGS: readonly Renaming[] = [
  // Logprobs are the only thing that the bridge asks the upstream to include.
  [/^include(?:\[0\])?$/, "logprobs"],
  [/^input$/, "messages"],
  [/^text\.format\.type$/, "response_format.type"],
  [/^text\.format\.(name|description|schema|strict)/, "response_format.json_schema.$1"],
  [/^text\.format$/, "response_format"],
  [/^text\.verbosity$/, "verbosity"],
  [/^reasoning\.effort$/, "reasoning_effort"],
];

/** Chat nests the name in a choice differently for each kind, so the whole choice is named. */
const TOOLS_RENAMINGS: readonly Renaming[] = [[/^tool_choice\..+/, "tool_choice"], ...FIELD_RENAMINGS];
const FUNCTIONS_RENAMINGS: readonly Renaming[] = [
  [/^tools$/, "functions"],
  [/^tool_choice/, "function_call"],
  ...FIELD_RENAMINGS,
];

const CUSTOM_TOOL_RENAMINGS: readonly Renaming[] = [
  [/^\.format\.(syntax|definition)/, ".format.grammar.$1"],
  [/^\./, ".custom."],
];

/** Null if the client sent no such field. */
export function translatePath(path: string, context: BridgeContext): string | null {
  if (path === "max_output_tokens") return context.maxTokensField;
  const item = /^input\[(\d+)\](.*)$/.exec(path);
  if (item !== null) return translateItem(Number(item[1]), item[2] ?? "", context);
  const tool = /^tools\[(\d+)\](.*)$/.exec(path);
  if (tool !== null) return translateTool(Number(tool[1]), tool[2] ?? "", context);
  const fixed = rename(path, context.legacy ? FUNCTIONS_RENAMINGS : TOOLS_RENAMINGS);
  if (fixed !== path) return fixed;
  return SHARED_NAMES.has(/^[a-z_]*/.exec(path)?.[0] ?? "") ? path : null;
}

/** Replaces the paths in an error's text. */
export function translateMessage(message: string, context: BridgeContext): string {
  return message.replaceAll(
    /\binput\[\d+\](?:\.[a-z_]+|\[\d+\])*|'(?:input|max_output_tokens|tools\[\d+\][\w.[\]]*|(?:text|reasoning|tool_choice)\.[\w.[\]]+)'/g,
    (found) => {
      const quote = found.startsWith("'") ? "'" : "";
      const path = quote === "" ? found : found.slice(1, -1);
      const name = translatePath(path, context);
      return name === null ? found : `${quote}${name}${quote}`;
    },
  );
}

function translateItem(index: number, inside: string, context: BridgeContext): string | null {
  const origin = context.origins[index];
  if (origin === undefined) return null;
  const renamed = rename(inside, ITEM_RENAMINGS[origin.kind]);
  const legacy = origin.path.endsWith(".function_call") ? renamed.replace(".function.", ".") : renamed;
  const content = /^(\.content)(\[.*)$/.exec(legacy);
  return (
    origin.path + (content === null ? legacy : `${content[1]}${rename(content[2] ?? "", PART_RENAMINGS)}`)
  );
}

function translateTool(index: number, inside: string, context: BridgeContext): string {
  if (context.legacy) return `functions[${index}]${inside}`;
  const path = `tools[${index}]`;
  if (inside === "" || inside === ".type") return path + inside;
  return context.toolKinds[index] === "custom"
    ? path + CUSTOM_TOOL_RENAMINGS.reduce((at, [from, to]) => at.replace(from, to), inside)
    : `${path}.function${inside}`;
}

function rename(path: string, renamings: readonly Renaming[]): string {
  const found = renamings.find(([from]) => from.test(path));
  return found === undefined ? path : path.replace(found[0], found[1]);
}
