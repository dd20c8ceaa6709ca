// However a config is mistyped, no message repeats a secret of it.

import { expect, test } from "bun:test";
import { readFileSync, writeFileSync } from "node:fs";
import { explainProblems } from "../../../src/cli/doctor/config.ts";
import { checkConfigText } from "../../../src/config/file/load.ts";
import { openDice } from "../../harness/random.ts";
import { makeTempFolder } from "../../harness/temp.ts";

const EXAMPLE = readFileSync(`${import.meta.dir}/../../../config.example.yaml`, "utf8");
const SECRETS = [
  "sk-ant-api03-4f7Qz9LmXw2",
  "sk-proj-8Hn3kVb6TyR1",
  "AIzaSyD7x2Kp9Wq4Lm",
  "xai-5Tg8Nc2Jd7Vf",
  "sk-kr-0123456789abcdef",
  "gsk_9Zr4Bs6Hw1Ye3",
];

/** Puts secrets into the example, and adds keys as flow maps, in which a missing space joins two words. */
function writeConfig(): string {
  let next = 0;
  const filled = EXAMPLE.replaceAll(/\$\{\w+:-[^}]*\}/g, () => SECRETS[next++ % SECRETS.length] ?? "");
  const keys = SECRETS.map(
    (secret, index) => `  - { name: flow-${index}, group: claude, secret: ${secret}-k }\n`,
  );
  return filled.replace(/^keys:\n/m, `$&${keys.join("")}`);
}

/** A message leaks a secret if it has this many characters of it in a row. */
const PIECE = 8;
const pieces = SECRETS.flatMap((secret) =>
  Array.from({ length: secret.length - PIECE + 1 }, (_, at) => secret.slice(at, at + PIECE)),
);
const findLeaks = (text: string): string[] => pieces.filter((piece) => text.includes(piece));

function createDice(seed: number): (sides: number) => number {
  // Seeds that follow one another would begin with the same rolls.
  const dice = openDice(Math.imul(seed, 0x9e_37_79_b1));
  return (sides) => Math.floor(dice() * sides);
}

const TYPED = [...": \"'=-{}[],#\n\t&*!|$".split(""), "${"];

/** One to three characters around the beginning of a secret are removed, added, doubled or exchanged. */
function mistype(text: string, roll: (sides: number) => number): string {
  const places = SECRETS.flatMap((secret) =>
    [...text.matchAll(new RegExp(secret, "g"))].map(({ index }) => index),
  );
  const place = places[roll(places.length)] ?? 0;
  let changed = text;
  for (let left = 1 + roll(3); left > 0; left -= 1) {
    const at = place + 11 - roll(roll(2) === 0 ? 14 : 26);
    const typed = TYPED[roll(TYPED.length)] ?? "";
    const kept = [changed.slice(0, at), changed.slice(at, at + 1), changed.slice(at + 1)] as const;
    const [before, here, after] = kept;
    changed = [
      before + after,
      before + typed + here + after,
      before + here + here + after,
      before + typed + after,
    ][roll(4)]!;
  }
  return changed;
}

/** How many mistyped configs each run tries. No two runs try the same configs. */
const ROUNDS = 40;
const FIRST_SEED = Math.floor(Math.random() * 1e9);

test("a refusal of a mistyped config, by the gateway or by doctor, shows no piece of a secret", () => {
  using folder = makeTempFolder();
  const path = folder.join("gateway.yaml");
  const config = writeConfig();
  let refused = 0;
  checkConfigText(config, path, {});
  for (let seed = FIRST_SEED; seed < FIRST_SEED + ROUNDS; seed += 1) {
    const text = mistype(config, createDice(seed));
    writeFileSync(path, text, { mode: 0o600 });
    let said = "";
    try {
      said = checkConfigText(text, path, {}).warnings.join("\n");
    } catch (error) {
      refused += 1;
      said = String(error);
      said += JSON.stringify(explainProblems(error, path, {}));
    }
    expect([seed, findLeaks(said)]).toEqual([seed, []]);
  }
  expect(refused).toBeGreaterThan(ROUNDS / 4);
});

test.each([
  ["keys: [{ name: k, group: g, secret:sk-kr-0123456789 }]"],
  ["keys: [{ name: k, group: g, secret sk-kr-0123456789 }]"],
  ['keys: [{ name: k, group: g, secret="sk-kr-0123456789" }]'],
  ['channels: { r: { platform: messages, credential:"sk-kr-0123456789" } }'],
  ['channels: { r: { platform: messages, credential:"a plain password" } }'],
  ["channels: { r: { platform: messages, credentialsk-kr-0123456789: x } }"],
  ["channels: { r: { platform: messages, credential: '${AIzaSyD7x2Kp9Wq4Lm}' } }"],
  ["keys: [{ name: k, group: x-sk-kr-0123456789, secret: abc }]"],
  ["keys: [{ name: k, group: g, secret: sk,kr-0123456789 }]"],
  ["keys: [{ name: k, group: g, secret: a,plain password }]"],
])("the config %p is refused, and its secret is not shown", (text) => {
  let said = "";
  try {
    checkConfigText(text, "/nonexistent/gateway.yaml", {});
  } catch (error) {
    said = String(error);
  }
  expect(said).toContain("/nonexistent/gateway.yaml:1:");
  for (const secret of ["kr-0123", "plain password", "AIzaSyD7x2"]) expect(said).not.toContain(secret);
});
