// What the writers of requests share.

import type { Choice, ContentPart, Conversation, Options, TextPart, Tool } from "./conversation.ts";
import { nameMediaType } from "../provider-rules.ts";
import { refuseField } from "./notes.ts";

/** A search that the client forces cannot be left out. */
export function keepFunctions({ tools, options: { choice }, notes }: Conversation): readonly Tool[] {
  const kept = tools.filter(({ kind }) => kind !== "search");
  if (kept.length === tools.length) return kept;
  const isForced = choice?.kind === "tool" && !kept.some(({ name }) => name === choice.name);
  if (isForced || kept.length === 0) refuseField("tools", "web_search is not available on this channel.");
  notes.add("tools:web_search");
  return kept;
}

/** Other tools are not sent. */
export function keepAllowed(tools: readonly Tool[], choice: Choice | undefined): readonly Tool[] {
  const only = choice?.kind === "tool" ? undefined : choice?.only;
  if (only === undefined) return tools;
  const kept = tools.filter(({ name }) => only.includes(name));
  if (kept.length === 0) refuseField("tool_choice", "none of the tools that it allows is in `tools`.");
  return kept;
}

/** A member that is undefined is not sent. */
export function ifAny<Item>(list: readonly Item[]): readonly Item[] | undefined {
  return list.length === 0 ? undefined : list;
}

export function isText(part: ContentPart): part is TextPart {
  return part.kind === "text";
}

export function joinTexts(parts: readonly ContentPart[], separator = "\n\n"): string {
  const texts = parts.flatMap((part) => (part.kind === "text" ? [part.text] : []));
  return texts.length === 1 ? (texts[0] ?? "") : texts.join(separator);
}

/** Only some dialects have a field for this. */
export function markFailure(text: string, failed: boolean): string {
  return failed && !/^error\b/i.test(text) ? `Error: ${text}` : text;
}

/** Null for an address. */
export function readDataUrl(url: string): { type: string; data: string } | null {
  if (!url.startsWith("data:")) return null;
  const comma = url.indexOf(",");
  const type = nameMediaType(url.slice("data:".length, comma));
  return comma < 0 ? null : { type, data: url.slice(comma + 1) };
}

export function limitOption(
  { notes }: Conversation,
  options: Options,
  name: "cap" | "temperature",
  most: number | null,
): void {
  if (most === null || (options[name] ?? 0) <= most) return;
  notes.addOption(name, most);
  options[name] = most;
}
