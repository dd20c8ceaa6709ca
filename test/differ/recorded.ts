// Recorded traffic of real providers, read in place. Each answer goes to a client of its own dialect, and is converted for
// clients of each other dialect. Each request is converted for upstreams of each other dialect.

import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { answered, type Dialect, DIALECTS, JSON_TYPE, MODELS, request, SSE_TYPE } from "./dialects.ts";
import type { Scenario, Section, Step } from "./side.ts";
import type { Script } from "./wire.ts";

const FOLDER = join(import.meta.dir, "../../../shared/fixtures");

interface Recording {
  readonly id: string;
  readonly file: string;
  readonly request_file?: string;
  readonly family: "anthropic" | "openai-responses" | "openai-chat" | "gemini";
  readonly stream: boolean;
  readonly status: number;
  readonly url_path: string;
  readonly response_headers: Readonly<Record<string, string>>;
  readonly expect: { readonly error?: unknown };
}

const DIALECT_OF = {
  anthropic: "messages",
  "openai-responses": "responses",
  "openai-chat": "chat",
  gemini: "content",
} as const;

function listRecordings(): readonly Recording[] {
  const path = join(FOLDER, "manifest.json");
  return existsSync(path) ? JSON.parse(readFileSync(path, "utf8")).fixtures : [];
}

function replay({ file, status, response_headers: fields }: Recording): Script {
  const kept = Object.entries(fields).filter(([name]) => name !== "content-type");
  const type = fields["content-type"] ?? (file.endsWith(".sse") ? SSE_TYPE : JSON_TYPE)[0]![1];
  return { status, fields: [["content-type", type], ...kept], pieces: [readFileSync(join(FOLDER, file))] };
}

/** Returns the gateway's path for the endpoint of a recording, whose own path may begin differently. */
function pathOf({ family, url_path: path, file }: Recording, stream: boolean): string {
  if (family === "anthropic")
    return path.endsWith("count_tokens") ? "/v1/messages/count_tokens" : "/v1/messages";
  if (family === "openai-chat") return "/v1/chat/completions";
  if (family === "openai-responses") return `/v1/responses${/responses(\/.*)$/.exec(path)?.[1] ?? ""}`;
  const verb = path.split(":").at(-1) ?? "generateContent";
  return `/v1beta/models/${MODELS.content}:${verb}${stream && file.endsWith(".sse") ? "?alt=sse" : ""}`;
}

const keyOf = (dialect: Dialect): string => (dialect === "content" ? "x-goog-api-key" : "authorization");
const platformOf = (dialect: Dialect): string => (dialect === "chat" ? "responses" : dialect);

/** Sends a recording to a client of its own dialect. The request is the recorded one, if there is one. */
function pass(recording: Recording): Step {
  const dialect = DIALECT_OF[recording.family];
  const body =
    recording.request_file === undefined
      ? request(dialect, recording.stream).body
      : readFileSync(join(FOLDER, recording.request_file));
  return {
    target: pathOf(recording, recording.stream),
    body,
    keyIn: keyOf(dialect),
    scripts: [replay(recording)],
  };
}

const isGeneration = ({ url_path: path }: Recording): boolean =>
  /(?:messages|completions|responses|[gG]enerateContent)$/.test(path);
/** Whether the channel rests after the recording. */
const isFailure = ({ status, expect }: Recording): boolean =>
  status !== 200 || (expect.error ?? null) !== null;

/** Recordings after which the channel is usable share a scenario. Each other recording has a scenario of its own. */
function* scenes(
  name: string,
  group: Section,
  platform: string,
  list: readonly Recording[],
  step: (each: Recording) => Step,
): Generator<Scenario> {
  const scene = (at: string, some: readonly Recording[]): Scenario => ({
    name: `${name}-${at}`,
    group,
    channels: { a: { platform } },
    steps: some.map((each) => ({ ...step(each), note: each.id.replaceAll(/[^\w-]/g, "-") })),
  });
  const good = list.filter((each) => !isFailure(each));
  const size = 40;
  for (let at = 0; at < good.length; at += size) yield scene(String(at), good.slice(at, at + size));
  for (const [at, each] of list.filter(isFailure).entries()) yield scene(`failed-${at}`, [each]);
}

/** Lists the scenarios of the recordings. Null: there are no recordings. */
export function listRecorded(): Scenario[] | null {
  const recordings = listRecordings();
  const scenarios: Scenario[] = [];
  for (const dialect of DIALECTS) {
    const own = recordings.filter(({ family }) => DIALECT_OF[family] === dialect);
    const group = { platform: platformOf(dialect) };
    scenarios.push(...scenes(`rec-${dialect}`, group, dialect, own, pass));
    const generated = own.filter(isGeneration);
    const answers = generated.filter(({ file, stream }) => stream === file.endsWith(".sse"));
    const asked = generated
      .filter(({ request_file: file }) => file !== undefined)
      .map((each) => ({ ...each, status: 200, expect: {} }));
    for (const other of DIALECTS) {
      if (other === dialect) continue;
      const back = (each: Recording): Step => {
        const { target, body } = request(other, each.stream);
        return { target, body, keyIn: keyOf(other), scripts: [replay(each)] };
      };
      const forth = (each: Recording): Step => ({ ...pass(each), scripts: [answered(other, each.stream)] });
      const their = { platform: platformOf(other), convert: true };
      scenarios.push(...scenes(`rec-${dialect}-for-${other}`, their, dialect, answers, back));
      const ours = { ...group, convert: true };
      scenarios.push(...scenes(`rec-${dialect}-to-${other}`, ours, other, asked, forth));
    }
  }
  return recordings.length === 0 ? null : scenarios;
}
