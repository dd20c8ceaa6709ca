// Reads recorded traffic of real providers, in place from ../shared/fixtures.
// Without the folder, `hasFixtures` is false and tests skip visibly:
//   test.skipIf(!hasFixtures)("…", …)

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { replay } from "./upstreams/replay.ts";
import type { Answer } from "./model/answers/answer.ts";
import type { FamilyName } from "./model/answers/family.ts";
import { isThere } from "./needs.ts";

const ROOT = join(import.meta.dir, "../../../shared/fixtures");

/** A recording's entry in the manifest, with the members that tests read. */
export interface Fixture {
  readonly id: string;
  readonly file: string;
  readonly request_file?: string;
  readonly family: "anthropic" | "openai-responses" | "openai-chat" | "gemini";
  readonly kind: string;
  readonly native: boolean;
  readonly model: string;
  readonly stream: boolean;
  readonly status: number;
  readonly url_path: string;
  readonly response_headers: Readonly<Record<string, string>>;
  readonly features: readonly string[];
  readonly pairs?: unknown;
  // oxlint-disable-next-line typescript/no-explicit-any -- as loose as the manifest is
  readonly expect: any;
}

export const hasFixtures = isThere("recordings");

export function listFixtures(which: (fixture: Fixture) => boolean = () => true): readonly Fixture[] {
  if (!hasFixtures) return [];
  const manifest: { fixtures: Fixture[] } = JSON.parse(readFileSync(join(ROOT, "manifest.json"), "utf8"));
  return manifest.fixtures.filter(which);
}

export function readFixture({ file }: Fixture): Buffer {
  return readFileSync(join(ROOT, file));
}

/** Reads the request of a recording that has one. */
export function readRequest({ request_file = "" }: Fixture): Buffer {
  return readFileSync(join(ROOT, request_file));
}

const FAMILY_OF = {
  anthropic: "messages",
  "openai-responses": "responses",
  "openai-chat": "chat",
  gemini: "content",
} as const satisfies Record<Fixture["family"], FamilyName>;

/** The recording as an answer of the simulated upstream: `upstream.next({ answer: replayFixture(fixture) })`. */
export function replayFixture(fixture: Fixture, cuts: readonly number[] = []): Answer {
  const type = fixture.file.endsWith(".sse") ? "text/event-stream" : "application/json";
  const contentType = fixture.response_headers["content-type"] ?? type;
  const bytes = readFixture(fixture);
  return replay({ family: FAMILY_OF[fixture.family], bytes, status: fixture.status, contentType, cuts });
}

/** Returns a request that the gateway routes to this recording's dialect. */
export function askForFixture(fixture: Fixture): { target: string; body: object } {
  const { family, stream, file } = fixture;
  const model = `demo-${family}`;
  const messages = [{ role: "user", content: "x" }];
  if (family === "anthropic")
    return { target: "/v1/messages", body: { model, max_tokens: 99, stream, messages } };
  if (family === "openai-responses") return { target: "/v1/responses", body: { model, input: "x", stream } };
  const asked = stream ? { stream_options: { include_usage: true } } : {};
  if (family === "openai-chat")
    return { target: "/v1/chat/completions", body: { model, stream, messages, ...asked } };
  const verb = stream ? `streamGenerateContent${file.endsWith(".sse") ? "?alt=sse" : ""}` : "generateContent";
  const body = { contents: [{ role: "user", parts: [{ text: "x" }] }] };
  return { target: `/v1beta/models/${model}:${verb}`, body };
}
