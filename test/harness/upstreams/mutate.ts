// Answers of a broken or dishonest upstream: some values of an answer are replaced by values of another kind, where a
// reader expects a text, a count, a list or an object.

import { parseJson } from "../../../src/lib/json/json.ts";
import { Random } from "../../simulate/world/random.ts";

/** Numbers as JSON texts: a double cannot hold some of them. */
const ODD_NUMBERS: readonly string[] = [
  "5000000",
  "9223372036854775808",
  "9007199254740993",
  "1e300",
  "1e999",
];
const ODD_VALUES: readonly string[] = [
  "-1",
  "0.5",
  "0",
  "null",
  "true",
  '""',
  '"5000000"',
  '"\\ud800"',
  "[]",
  "[1e300]",
  "{}",
  '{"text":1e300}',
  '{"text":5000000,"type":9007199254740993,"cost":1.5}',
  `"${"x".repeat(70_000)}"`,
  `${"[".repeat(600)}${"]".repeat(600)}`,
];

/** Stands for an odd value until the event or body has become JSON. */
const PLACE = "\u0001odd\u0001";

/** The pieces of an answer with one to three odd values. The same seed makes the same answer. */
export function mutatePieces(pieces: readonly string[], ...seed: readonly (string | number)[]): string[] {
  const random = new Random("mutate", ...seed);
  const changed = [...pieces];
  for (let left = random.between(1, 3); left > 0; left -= 1) {
    const index = random.int(changed.length);
    changed[index] = mutatePiece(changed[index] ?? "", random);
  }
  return changed;
}

/** A piece is an event with one line of data, or a body. */
function mutatePiece(piece: string, random: Random): string {
  return piece.replace(/[{[].*[}\]]/s, (json) => {
    const value = parseJson(json);
    const places = listPlaces(value);
    const leaves = places.filter(({ holder, name }) => typeof Reflect.get(holder, name) !== "object");
    if (places.length === 0) return json;
    const { holder, name } = random.pick(leaves.length > 0 && random.chance(700) ? leaves : places);
    Reflect.set(holder, name, PLACE);
    return fill(value, random.pick(random.chance(500) ? ODD_NUMBERS : ODD_VALUES));
  });
}

function fill(value: unknown, odd: string): string {
  return JSON.stringify(value).replaceAll(JSON.stringify(PLACE), () => odd);
}

/** Gives every member of this name an odd value. */
export function replaceMember(pieces: readonly string[], member: string, odd: string): string[] {
  const replace = (name: string, value: unknown): unknown => (name === member ? PLACE : value);
  return pieces.map((piece) => piece.replace(/\{.*\}/s, (json) => fill(JSON.parse(json, replace), odd)));
}

/** Members of usage that upstreams can report, and that the simulated answers do not have. */
const MORE_USAGE = `"output_tokens_details":{"thinking_tokens":1,"reasoning_tokens":1},"cost":0.5,"num_cached_tokens":1,
  "server_tool_use":{"web_search_requests":1},"input_tokens_details":{"cached_tokens":1},"cost_in_usd_ticks":5,
  "iterations":[{"type":"message","input_tokens":1,"output_tokens":1}],"total_tokens":2,"toolUsePromptTokenCount":1,
  "prompt_tokens_details":{"cached_tokens":1,"audio_tokens":1},"completion_tokens_details":{"reasoning_tokens":1},
  "cachedContentTokenCount":1,"thoughtsTokenCount":1,"promptTokensDetails":[{"modality":"TEXT","tokenCount":1}],`;

export function addUsage(pieces: readonly string[]): string[] {
  const more = MORE_USAGE.replaceAll(/\n */g, "");
  return pieces.map((piece) => piece.replaceAll(/"usage(?:Metadata)?":\{/g, (usage) => usage + more));
}

function listPlaces(value: unknown): { holder: object; name: string }[] {
  if (typeof value !== "object" || value === null) return [];
  return Object.entries(value).flatMap(([name, inner]) => [{ holder: value, name }, ...listPlaces(inner)]);
}
