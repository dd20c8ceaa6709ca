// A session over its turns: a lane for each agent, a bar for each request.
// Above the line: the prompt's cached and new tokens; below it: the answer's.

import type { RequestRow } from "../../../billing/reports/requests.ts";
import { describeCause } from "../../../billing/reports/words.ts";
import { useWidth } from "./basic.tsx";
import {
  formatClock,
  formatCount,
  formatExact,
  formatMoment,
  formatShort,
  isFailed,
  MAIN_AGENT,
} from "./format.ts";

const UP_PX = 56;
const DOWN_PX = 18;
const MARK_PX = 10;
const MIN_UP_PX = 12;
const MIN_STEP_PX = 4;
const MAX_STEP_PX = 28;

/** `turns`: oldest first.
 *  `agents`: in tree order; empty: the main agent. */
export function Timeline({
  turns,
  agents,
}: {
  readonly turns: readonly RequestRow[];
  readonly agents: readonly string[];
}) {
  const used = agents.filter((agent) => turns.some((turn) => turn.agent === agent));
  const [box, room] = useWidth();
  const step = Math.max(MIN_STEP_PX, Math.min(MAX_STEP_PX, room / Math.max(1, turns.length)));
  const mostIn = Math.max(1, ...turns.map(({ input }) => input));
  const mostOut = Math.max(1, ...turns.map(({ output }) => output));
  const marks = [
    ["cached", "read from the cache", turns.some(({ cached }) => cached > 0)],
    ["new", "new", true],
    ["output", "output", turns.some(({ output }) => output > 0)],
    ["missed", "missed the cache", turns.some(({ missed }) => missed !== undefined)],
    ["failed", "failed", turns.some(({ outcome }) => isFailed(outcome))],
  ] as const;
  const ends = [...turns.slice(0, 1), ...turns.slice(-1)].map(({ time }) => formatMoment(Date.parse(time)));
  return (
    <figure class="timeline">
      <div class="scroll" ref={box} tabIndex={0} role="region" aria-label="Timeline">
        {used.map((agent) => (
          <Lane key={agent} agent={agent} turns={turns} step={step} most={[mostIn, mostOut]} />
        ))}
      </div>
      <figcaption>
        {ends.length > 0 && (
          <p class="quiet">
            {ends.join(" to ")}. A prompt has up to {formatShort(mostIn)} tokens, an answer{" "}
            {formatShort(mostOut)}.
          </p>
        )}
        <ul class="keys-of">
          {marks.map(
            ([name, text, isThere]) =>
              isThere && (
                <li key={name}>
                  <span class={`swatch t-${name}`} aria-hidden="true" /> {text}
                </li>
              ),
          )}
        </ul>
      </figcaption>
    </figure>
  );
}

/** As high as the agent's largest prompt. */
function Lane({
  agent,
  turns,
  step,
  most: [mostIn, mostOut],
}: {
  readonly agent: string;
  readonly turns: readonly RequestRow[];
  readonly step: number;
  readonly most: readonly [number, number];
}) {
  const width = Math.max(step * turns.length, 60);
  const largest = Math.max(...turns.map((turn) => (turn.agent === agent ? turn.input : 0)));
  const base = MARK_PX + Math.max(MIN_UP_PX, Math.ceil((largest / mostIn) * UP_PX));
  const height = base + DOWN_PX;
  const bar = Math.max(1, step - (step > 6 ? 2 : 1));
  return (
    <div class="lane">
      <p class="lane-name">{agent === "" ? MAIN_AGENT : agent}</p>
      <svg width={width} height={height} viewBox={`0 0 ${width} ${height}`} aria-hidden="true">
        <line x1="0" x2={width} y1={base} y2={base} class="base" />
        {turns.map((turn, index) => {
          if (turn.agent !== agent) return null;
          const { id, input, cached, output, missed, outcome } = turn;
          const x = index * step;
          const [readPx, newPx] = [(cached / mostIn) * UP_PX, ((input - cached) / mostIn) * UP_PX];
          const outPx = Math.max(output > 0 ? 1 : 0, (output / mostOut) * DOWN_PX);
          return (
            <g key={id}>
              <title>{describeTurn(turn)}</title>
              <rect class="hit" x={x} y="0" width={step} height={height} />
              <rect class="t-cached" x={x} y={base - readPx} width={bar} height={readPx} />
              <rect class="t-new" x={x} y={base - readPx - newPx} width={bar} height={newPx} />
              <rect class="t-output" x={x} y={base + 1} width={bar} height={outPx} />
              {missed !== undefined && <circle class="t-missed" cx={x + bar / 2} cy="5" r="3" />}
              {isFailed(outcome) && <rect class="t-failed" x={x} y={base - 6} width={bar} height="12" />}
            </g>
          );
        })}
      </svg>
    </div>
  );
}

function describeTurn(turn: RequestRow): string {
  const { time, model, input, cached, output, charge_usd: charge, missed, outcome } = turn;
  return [
    `${formatClock(Date.parse(time))}, ${model}`,
    `${formatCount(input)} tokens in, ${formatCount(cached)} of them cached, ${formatCount(output)} out`,
    charge === null ? "charge not known" : formatExact(charge),
    ...(missed === undefined
      ? []
      : [`missed ${formatCount(missed.tokens)} tokens: ${describeCause(missed)}`]),
    ...(outcome === "complete" ? [] : [outcome.replaceAll("_", " ")]),
  ].join("\n");
}
