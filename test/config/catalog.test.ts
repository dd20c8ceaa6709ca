// When a group may be used.

import { expect, test } from "bun:test";
import { isGroupOpen } from "../../src/config/catalog.ts";
import { checkConfigText } from "../../src/config/file/load.ts";

const END = "2026-12-31T12:00:00.000Z";
const [before, at] = [new Date(Date.parse(END) - 1), new Date(END)];

test.each<[title: string, exclusive: boolean, plans: string, now: Date, open: boolean]>([
  ["without plans", true, "", before, false],
  ["open to all, without plans", false, "", before, true],
  ["with a plan that was not bought", true, "p: { groups: [g] }", before, false],
  ["open to all, with a plan that was not bought", false, "p: { groups: [g] }", before, true],
  ["with an active plan without an end", true, "p: { groups: [g], active: true }", at, true],
  ["before its plan ends", true, `p: { groups: [g], active: true, until: "${END}" }`, before, true],
  ["at the moment its plan ends", true, `p: { groups: [g], active: true, until: "${END}" }`, at, false],
  ["before the end of a plan that is off", true, `p: { groups: [g], until: "${END}" }`, before, false],
  [
    "while another plan goes on",
    true,
    `p: { groups: [g], active: true, until: "${END}" }, q: { groups: [other, g], active: true }`,
    at,
    true,
  ],
  ["while a plan of another group goes on", true, "q: { groups: [other], active: true }", at, false],
])("whether a group may be used, %s", (_, exclusive, plans, now, open) => {
  const text = `
channels: { a: { platform: messages, base_url: https://a.example, credential: x } }
groups:
  g: { platform: messages, channels: [a], exclusive: ${exclusive} }
  other: { platform: messages, channels: [a] }
plans: { ${plans} }
`;
  const group = checkConfigText(text, "/etc/g.yaml", {}).catalog.groups.get("g");
  expect(group !== undefined && isGroupOpen(group, now)).toBe(open);
});
