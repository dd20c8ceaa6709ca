// Checks request bodies by the types that each provider publishes with its SDK.

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DIALECT_NAMES, type DialectName } from "../../src/dialects/dialect.ts";

const MODULES = join(import.meta.dir, "../../node_modules");

/** The type of each dialect's requests. Google's SDK gives the outermost members other names than the wire. */
const TYPES: Readonly<Record<DialectName, string>> = {
  messages: `export type { MessageCreateParams as Body } from "${MODULES}/@anthropic-ai/sdk/resources/messages/messages.mjs";`,
  responses: `export type { ResponseCreateParams as Body } from "${MODULES}/openai/resources/responses/responses.mjs";`,
  // `reasoning_content` is not in OpenAI's types: DeepSeek and others want the thoughts of an answer back in it.
  chat: `import type { ChatCompletionAssistantMessageParam, ChatCompletionCreateParams, ChatCompletionMessageParam } from "${MODULES}/openai/resources/chat/completions/completions.mjs";
interface Thinking extends ChatCompletionAssistantMessageParam { reasoning_content: string }
export type Body = Omit<ChatCompletionCreateParams, "messages"> & { messages: (ChatCompletionMessageParam | Thinking)[] };`,
  content: `import type { Content, GenerationConfig, Tool } from "${MODULES}/@google/genai";
export interface Body {
  contents: Content[];
  systemInstruction?: Content;
  tools?: Tool[];
  toolConfig?: { functionCallingConfig: { mode: "AUTO" | "ANY" | "NONE"; allowedFunctionNames?: string[] } };
  generationConfig?: Omit<GenerationConfig, "thinkingConfig"> & {
    thinkingConfig?: { includeThoughts?: boolean; thinkingBudget?: number; thinkingLevel?: string };
  };
}`,
};

const OPTIONS = ["--noEmit", "--strict", "--skipLibCheck", "--target", "esnext", "--module", "esnext"];
const MORE_OPTIONS = [
  "--moduleResolution",
  "bundler",
  "--lib",
  "esnext,dom",
  "--types",
  "",
  "--singleThreaded",
];
const MAX_TEXT = 80;

/** Returns the compiler's errors about the bodies of each dialect. The compiler runs once, because its start takes longest. */
export async function checkPublishedTypes(
  bodiesOf: Readonly<Partial<Record<DialectName, readonly unknown[]>>>,
): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), "gateway-types-"));
  try {
    const files = DIALECT_NAMES.flatMap((dialect) => {
      const bodies = bodiesOf[dialect] ?? [];
      writeFileSync(join(folder, `${dialect}-body.ts`), TYPES[dialect]);
      const texts = bodies.map((body) => `(${JSON.stringify(body, shorten, 1)}) satisfies Body;`);
      const file = join(folder, `${dialect}.ts`);
      writeFileSync(file, [`import type { Body } from "./${dialect}-body.ts";`, ...texts].join("\n"));
      return bodies.length === 0 ? [] : [file];
    });
    const command = [join(MODULES, ".bin/tsc"), ...OPTIONS, ...MORE_OPTIONS, "--allowImportingTsExtensions"];
    const child = Bun.spawn([...command, ...files], { cwd: folder, stdout: "pipe" });
    const [said] = await Promise.all([child.stdout.text(), child.exited]);
    return said;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Shortens long texts for the compiler: their types are the same, and it is done sooner. */
function shorten(_name: string, value: unknown): unknown {
  return typeof value === "string" ? value.slice(0, MAX_TEXT) : value;
}
