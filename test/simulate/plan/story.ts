// Describes a plan, and what happened in its run.

import { GOOD_ANSWER } from "../upstreams/upstream.ts";
import type { Plan } from "./plan.ts";
import { SIMPLE_CLIENT, SIMPLE_REQUEST } from "./shrink.ts";

/** The lines of the trace that are shown: not every byte and timer. */
const SHOWN =
  / is sent | ends \(| gets (?!GET)| answers |says \(|is killed|does not start|FAILED|without power| sends RST|started again|has stopped|everything works|: (?:kill|cut power|stop|clock|standstill|disk|slow disk|index|upstream down)/;

/** Null: the line is not shown. */
export function describeEvent(line: string): string | null {
  if (!SHOWN.test(line)) return null;
  const space = line.indexOf(" ");
  const ms = (Number(line.slice(0, space)) / 1000).toFixed(1).padStart(10);
  return `${ms} ms  ${line.slice(space + 1).replace(/^world: /, "")}`;
}

/** Of clients, requests and answers only what is not plain. */
export function describePlan({ channels, clients, happenings, wall, ...world }: Plan): string[] {
  return [
    `the wall clock begins at ${new Date(wall).toISOString()}; ${JSON.stringify(world)}`,
    ...channels.map((channel) => `channel ${JSON.stringify(channel)}`),
    ...clients.flatMap(({ requests, ...client }) => [
      `client ${listDifferences(client, SIMPLE_CLIENT)}`,
      ...requests.map(({ answers, ...request }, index) => {
        const list = answers.map((answer) => listDifferences(answer, GOOD_ANSWER));
        return `  ${client.name}r${index}: ${listDifferences(request, SIMPLE_REQUEST)}; answered with: ${list.join(", then ")}`;
      }),
    ]),
    ...happenings.map(({ atMs, ...happening }) => `at ${atMs} ms: ${JSON.stringify(happening)}`),
  ];
}

function listDifferences(value: object, plain: object): string {
  const others = Object.entries(value).filter(
    ([name, each]) => !Bun.deepEquals(each, Reflect.get(plain, name)),
  );
  return JSON.stringify(Object.fromEntries(others));
}
