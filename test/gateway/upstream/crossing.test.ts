// A bridge is chosen by the client's dialect and the channel's dialect, never by one of them alone.

import { expect, test } from "bun:test";
import { PLATFORMS } from "../../../src/config/schema.ts";
import { DIALECT_NAMES, type DialectName } from "../../../src/dialects/dialect.ts";
import { findCrossing } from "../../../src/gateway/upstream/crossing.ts";

/** "same": sent as it is. */
function describeCrossing(client: DialectName, platform: (typeof PLATFORMS)[number]): string {
  try {
    const crossing = findCrossing(client, platform);
    return crossing === null ? "same" : `${crossing.dialect.name} ${crossing.path}`;
  } catch (error) {
    return error instanceof Error ? error.message : "";
  }
}

test.each([
  ["messages", "messages", "same"],
  ["responses", "responses", "same"],
  ["content", "content", "same"],
  ["messages", "relay", "same"],
  ["content", "relay", "same"],
  ["chat", "responses", "responses /v1/responses"],
] as const)("a %s request to a channel of the %s platform: %s", (client, platform, way) => {
  expect(describeCrossing(client, platform)).toBe(way);
});

test("a pair of dialects without a bridge is refused, and never sent to another endpoint", () => {
  const refused = DIALECT_NAMES.flatMap((client) =>
    PLATFORMS.filter((platform) => describeCrossing(client, platform).includes("cannot convert")).map(
      (platform) => `${client} → ${platform}`,
    ),
  );
  expect(refused).toEqual([
    "messages → responses",
    "messages → content",
    "responses → messages",
    "responses → content",
    "responses → relay",
    "chat → messages",
    "chat → content",
    "chat → relay",
    "content → messages",
    "content → responses",
  ]);
});
