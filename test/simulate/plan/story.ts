// Describes a plan, and what happened in its run.

import type { AnswerPlan, Plan } from "./plan.ts";

/** The lines of the trace that are shown: not every byte and timer. */
const SHOWN =
  / is sent | ends \(| gets (?!GET)| answers |says \(|is killed|does not start|FAILED|without power| sends RST|started again|has stopped|everything works|second gateway|: (?:kill|cut power|stop|clock|standstill|disk|slow disk|ledger|sums|channel|broken config|config touched|key off|limits changed|command|reprice|upstream down|idle connections)/;

/** Null: the line is not shown. */
export function describeEvent(line: string): string | null {
  if (!SHOWN.test(line)) return null;
  const space = line.indexOf(" ");
  const ms = (Number(line.slice(0, space)) / 1000).toFixed(1).padStart(10);
  return `${ms} ms  ${line.slice(space + 1).replace(/^world: /, "")}`;
}

export function describePlan(plan: Plan): string[] {
  const { weather, sync } = plan;
  return [
    `the wall clock begins at ${new Date(plan.wall).toISOString()}; ledger sync: ${sync}; failover attempts: ${plan.attempts}`,
    `the network: ${weather.latency} µs one way, window ${weather.window}${weather.piece === 0 ? "" : `, pieces of up to ${weather.piece} bytes`}`,
    ...plan.channels.map(
      ({ name, priority, idleCloseMs, idleClose }) =>
        `channel ${name}, priority ${priority}${idleCloseMs === 0 ? "" : `, closes idle connections after ${idleCloseMs} ms by ${idleClose}`}`,
    ),
    ...plan.clients.flatMap((client) => [
      `client ${client.name} speaks ${client.dialect}${client.pipelined ? ", pipelined" : ""}${client.keepAlive ? "" : ", a connection for each request"}${Object.keys(client.limits).length > 0 ? `, limits ${JSON.stringify(client.limits)}` : ""}`,
      ...client.requests.map(({ stream, leave, bad, slow, background, answers }, index) => {
        const parts = [
          stream ? "a stream" : "an answer",
          ...(background ? [`in the background, ready after ${background.readyMs} ms`] : []),
          ...(bad === null ? [] : [`sent wrongly: ${bad}`]),
          ...(leave === null
            ? []
            : [`leaves by ${leave.how} after ${leave.afterMs} ms or ${leave.afterBytes} bytes`]),
          ...(slow === null ? [] : ["reads slowly"]),
          answers.length === 0
            ? "answered correctly"
            : `answered with: ${answers.map(describeAnswer).join(", then ")}`,
        ];
        return `  ${client.name}r${index}: ${parts.join("; ")}`;
      }),
    ]),
    ...plan.happenings.map(({ atMs, ...happening }) => `at ${atMs} ms: ${JSON.stringify(happening)}`),
  ];
}

function describeAnswer(answer: AnswerPlan): string {
  const { kind, status, framing, coding, cut, delayMs, paceMs, interim, unasked, closes, missing } = answer;
  return [
    kind === "answer" ? `an answer (${framing})` : `${kind}${status === 200 ? "" : ` ${status}`}`,
    ...(delayMs > 5 ? [`after ${delayMs} ms`] : []),
    ...(paceMs > 0 ? [`one piece every ${paceMs} ms`] : []),
    ...(coding === null ? [] : [coding]),
    ...(cut === null ? [] : [`cut by ${cut.how} at ${cut.atPerMille / 10} %`]),
    ...(interim > 0 ? [`${interim} interim answers before`] : []),
    ...(unasked === null ? [] : [`and a second one, not requested, ${unasked.delayMs} ms later`]),
    ...(closes ? ["closes"] : []),
    ...(missing > 0 ? [`${missing} bytes missing`] : []),
  ].join(", ");
}
