// A group with `other_paths` must not forward a path that some server could take for a billed path.

import { expect, test } from "bun:test";
import * as fc from "fast-check";
import { PLATFORMS } from "../../src/config/schema.ts";
import { recognise } from "../../src/dialects/index.ts";
import { describeOther, isForwarded } from "../../src/dialects/other-paths.ts";
import { pathOf } from "../../src/dialects/path.ts";

const NAMING = { relayPrefix: "relay", vendor: "goog" };

/** Says which platforms forward the target, and as which path, if their groups list the paths `names`. */
function see(method: string, target: string, names: readonly string[] = [pathOf(target)]): string {
  const found = recognise({ method, target, field: () => undefined }, NAMING);
  if (found.kind !== "unknown") return found.kind;
  const { other } = found;
  if (other === null || !isForwarded(other, names)) return "never";
  const targets = PLATFORMS.flatMap((platform) => {
    const path = describeOther(other, platform)?.path;
    return path === undefined ? [] : [`${platform} ${path}`];
  });
  return targets.join(", ") || "never";
}

const ALL = (path: string): string =>
  ["messages", "responses", "content"].map((each) => `${each} ${path}`).join(", ");

test.each([
  ["POST", "/v1/new/endpoint", ALL("/v1/new/endpoint")],
  ["GET", "/v1/memory_stores/mem_1?limit=2", ALL("/v1/memory_stores/mem_1")],
  ["POST", "/v1/alpha/notes/v2/list", ALL("/v1/alpha/notes/v2/list")],
  ["POST", "/v1/realtime/client_secrets", ALL("/v1/realtime/client_secrets")],
  ["POST", "/v1beta/cachedContents", "content /v1beta/cachedContents"],
  ["POST", "/v1beta/models/veo-3:predictLongRunning", "content /v1beta/models/veo-3:predictLongRunning"],
  ["POST", "/v1/files", ALL("/v1/files")],
  ["POST", "/v1/filestores", ALL("/v1/filestores")],
])("a group that forwards unknown paths sends %s %s upstream", (method, target, expected) => {
  expect(see(method, target)).toBe(expected);
});

test.each([
  // Each of these is a served path after decoding, lower-casing or cleaning.
  ["POST", "/v1/Messages"],
  ["POST", "/v1/MESSAGES/count_tokens"],
  ["POST", "/v1/message%73"],
  ["POST", "/v1/%6dessages"],
  ["POST", "/v1/x/../messages"],
  ["POST", "/v1/x/..%2fmessages"],
  ["POST", "/v1/./messages"],
  ["POST", "/v1/x//messages"],
  ["POST", "/v1/messages;a=b"],
  ["POST", "/v1/messages%00"],
  ["POST", "/v1\\messages"],
  ["POST", "/v1/Responses"],
  ["POST", "/v1/Chat/Completions"],
  ["POST", "/v1beta/models/gemini-3:GenerateContent"],
  ["POST", "/v1beta/models/gemini-3:streamgeneratecontent"],
  ["POST", "/V1/new"],
  // Paths outside of the API's version, a path that is too long, and other methods.
  ["GET", "/api/oauth/profile"],
  ["GET", "/v2/new"],
  ["POST", "/new"],
  ["POST", "/upload/v1beta/files"],
  ["DELETE", "/v1/new"],
  ["HEAD", "/v1/new"],
  ["PUT", "/v1/new"],
  ["POST", `/v1/${"a".repeat(600)}`],
  ["POST", "/relay/relay/v1/new"],
])("no group forwards %s %s", (method, target) => {
  expect(see(method, target)).toBe("never");
});

test("no forwarded path is another spelling of a billed path", () => {
  const words = "v1 v1beta messages responses chat completions models m:generateContent".split(" ");
  const segment = fc.oneof(
    fc.constantFrom(...words, "..", ".", "", "files", "%2e%2e", "%2f", "batches"),
    fc.string({ maxLength: 6 }),
  );
  const change = fc.constantFrom(
    (text: string) => text,
    (text: string) => text.toUpperCase(),
    (text: string) => encodeURIComponent(text),
    (text: string) => `${text}/`,
  );
  const paths = fc.array(fc.tuple(segment, change), { minLength: 1, maxLength: 6 });
  fc.assert(
    fc.property(paths, (parts) => {
      const path = `/v1/${parts.map(([text, how]) => how(text)).join("/")}`;
      if (see("POST", path) === "never" || see("POST", path) === "target" || see("POST", path) === "upgrade")
        return;
      let clean = path;
      for (let round = 0; round < 3; round += 1) clean = decodeOnce(clean);
      const resolved = new URL(`http://h${clean.replaceAll("\\", "/").replaceAll(/\/+/g, "/")}`).pathname;
      for (const spelling of [clean, resolved, resolved.toLowerCase()])
        expect([
          spelling,
          recognise({ method: "POST", target: spelling, field: () => undefined }, NAMING).kind,
        ]).toEqual([spelling, "unknown"]);
    }),
    { numRuns: 3000 },
  );
});

function decodeOnce(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
