// Names of the upstream's request → names of the client's, so that an upstream's
// complaint about `input[3].output[0].file_data` is one about the client's message.

import type { BridgeContext, ItemKind } from "../context.ts";
import { SHARED_NAMES } from "./fields.ts";

/** A part of a path to find, and what it is called in chat. */
type Renaming = readonly [RegExp, string];

const PART: readonly Renaming[] = [
  [/^(\[\d+\])\.image_url$/, "$1.image_url.url"],
  [/^(\[\d+\])\.detail$/, "$1.image_url.detail"],
  [/^(\[\d+\])\.(file_data|file_id|filename)$/, "$1.file.$2"],
];

const INSIDE: Readonly<Record<ItemKind, readonly Renaming[]>> = {
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

const FIXED: readonly Renaming[] = [
  // For the one thing that is ever asked to be included.
  [/^include(?:\[0\])?$/, "logprobs"],
  [/^input$/, "messages"],
  [/^text\.format\.type$/, "response_format.type"],
  [/^text\.format\.(name|description|schema|strict)/, "response_format.json_schema.$1"],
  [/^text\.format$/, "response_format"],
  [/^text\.verbosity$/, "verbosity"],
  [/^reasoning\.effort$/, "reasoning_effort"],
];

/** Chat nests a choice deeper, by its kind: the whole of it is named. */
const MODERN: readonly Renaming[] = [[/^tool_choice\..+/, "tool_choice"], ...FIXED];
const LEGACY: readonly Renaming[] = [[/^tools$/, "functions"], [/^tool_choice/, "function_call"], ...FIXED];

const CUSTOM_TOOL: readonly Renaming[] = [
  [/^\.format\.(syntax|definition)/, ".format.grammar.$1"],
  [/^\./, ".custom."],
];

/** Null when the client has sent nothing of that name. */
export function translatePath(path: string, context: BridgeContext): string | null {
  if (path === "max_output_tokens") return context.maxTokensField;
  const item = /^input\[(\d+)\](.*)$/.exec(path);
  if (item !== null) return translateItem(Number(item[1]), item[2] ?? "", context);
  const tool = /^tools\[(\d+)\](.*)$/.exec(path);
  if (tool !== null) return translateTool(Number(tool[1]), tool[2] ?? "", context);
  const fixed = rename(path, context.legacy ? LEGACY : MODERN);
  if (fixed !== path) return fixed;
  return SHARED_NAMES.has(/^[a-z_]*/.exec(path)?.[0] ?? "") ? path : null;
}

/** The paths in an error's text, in the client's words. */
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
  const renamed = rename(inside, INSIDE[origin.kind]);
  const legacy = origin.path.endsWith(".function_call") ? renamed.replace(".function.", ".") : renamed;
  const content = /^(\.content)(\[.*)$/.exec(legacy);
  return origin.path + (content === null ? legacy : `${content[1]}${rename(content[2] ?? "", PART)}`);
}

function translateTool(index: number, inside: string, context: BridgeContext): string {
  if (context.legacy) return `functions[${index}]${inside}`;
  const path = `tools[${index}]`;
  if (inside === "" || inside === ".type") return path + inside;
  return context.toolKinds[index] === "custom"
    ? path + CUSTOM_TOOL.reduce((at, [from, to]) => at.replace(from, to), inside)
    : `${path}.function${inside}`;
}

function rename(path: string, renamings: readonly Renaming[]): string {
  const found = renamings.find(([from]) => from.test(path));
  return found === undefined ? path : path.replace(found[0], found[1]);
}
