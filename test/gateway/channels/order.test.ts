// The order in which channels are tried.

import { expect, test } from "bun:test";
import { checkConfigText } from "../../../src/config/file/load.ts";
import { orderCandidates } from "../../../src/gateway/channels/order.ts";
import { findMatch } from "../../../src/gateway/intake/match.ts";

const PRIORITIES = { a: 1, b: 2, c: 2, d: 3 };

function candidatesWith(listed: string) {
  const channels = Object.entries(PRIORITIES).map(([name, priority]) => [
    name,
    { platform: "messages", base_url: "http://127.0.0.1:9", credential: "xxxx", priority },
  ]);
  const config = {
    channels: Object.fromEntries(channels),
    groups: { g: { platform: "messages", channels: Object.keys(PRIORITIES) } },
    keys: [{ name: "k", group: "g", secret: "sk-test" }],
  };
  const { catalog } = checkConfigText(JSON.stringify(config), "/nonexistent/gateway.yaml", {});
  return findMatch(catalog.keys.get("k")!, "m").candidates.map((candidate) =>
    listed.includes(candidate.channel.name) ? { ...candidate, isListed: true } : candidate,
  );
}

test.each<[title: string, listed: string, current: string | null, order: string]>([
  ["by priority if no list is known", "", null, "abcd"],
  ["with the conversation's channel first", "", "d", "dabc"],
  ["with the channel that lists the model first, whatever its priority", "d", null, "dabc"],
  ["with all channels that list the model first, by priority", "bd", null, "bdac"],
  ["by priority if all channels list the model", "abcd", null, "abcd"],
  ["with a conversation's channel first among those that list the model", "bd", "d", "dbac"],
  ["with a listing channel before a conversation's channel that does not list the model", "b", "a", "bacd"],
])("channels are ordered %s", (_title, listed, current, order) => {
  // Equal random numbers keep the order of equal channels.
  const ordered = orderCandidates(candidatesWith(listed), current, () => 0.5);
  expect(ordered.map(({ channel }) => channel.name).join("")).toBe(order);
});
