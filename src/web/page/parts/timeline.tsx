// A session over its turns: a lane for each agent, a bar for each request. What was read from the cache, what was sent anew,
// and below the line what was answered. The same rows are in the view of requests, for everybody whom a picture does not serve.

import type { RequestRow } from "../../api.ts";
import { hrefOf } from "../state/route.ts";
import { useWidth } from "./basic.tsx";
import {
  formatClock,
  formatCount,
  formatMoment,
  formatShort,
  formatUsd,
  isFailed,
  MAIN_AGENT,
} from "./format.ts";

/** A request of the ledger, or one that was refused, which only the live feed knows. */
export interface TurnRow extends Pick<
  RequestRow,
  "id" | "time" | "model" | "agent" | "input" | "cached" | "output" | "charge_usd" | "missed" | "outcome"
> {
  /** Why it was refused, or which limit it has reached. */
  readonly limit?: string | null | undefined;
}

const UP_PX = 56;
const DOWN_PX = 18;
const MARK_PX = 10;
const MIN_UP_PX = 12;
const MIN_STEP_PX = 4;
const MAX_STEP_PX = 28;

/** `turns`: the oldest first. `agents`: in the order of their tree; empty is the main agent. */
export function Timeline({
  session,
  turns,
  agents,
}: {
  readonly session: string;
  readonly turns: readonly TurnRow[];
  readonly agents: readonly string[];
}) {
  const used = agents.filter((agent) => turns.some((turn) => turn.agent === agent));
  const [box, room] = useWidth();
  const step = Math.max(MIN_STEP_PX, Math.min(MAX_STEP_PX, room / Math.max(1, turns.length)));
  const mostIn = Math.max(1, ...turns.map(({ input }) => input));
  const mostOut = Math.max(1, ...turns.map(({ output }) => output));
  const live = <a href={hrefOf(["live"], { session })}>Live</a>;
  const marks = [
    ["cached", "read from the cache"],
    ["new", `new, up to ${formatShort(mostIn)}`],
    ["output", `output, up to ${formatShort(mostOut)}`],
    ["missed", "missed the cache"],
    ["failed", "failed"],
    ["limit", <>a limit, or refused, as far as {live} still knows</>],
  ] as const;
  const [first] = turns;
  const last = turns.at(-1);
  return (
    <figure class="timeline">
      <div class="scroll" ref={box} tabIndex={0} role="region" aria-label="Timeline">
        {used.map((agent) => (
          <Lane
            key={agent}
            session={session}
            agent={agent}
            turns={turns}
            step={step}
            most={[mostIn, mostOut]}
          />
        ))}
      </div>
      <figcaption>
        {first !== undefined && last !== undefined && (
          <p class="quiet">
            {formatMoment(Date.parse(first.time))} to {formatMoment(Date.parse(last.time))}
          </p>
        )}
        <ul class="keys-of">
          {marks.map(([name, text]) => (
            <li key={name}>
              <span class={`swatch t-${name}`} aria-hidden="true" /> {text}
            </li>
          ))}
        </ul>
      </figcaption>
    </figure>
  );
}

interface LaneProps {
  readonly session: string;
  readonly agent: string;
  readonly turns: readonly TurnRow[];
  readonly step: number;
  readonly most: readonly [number, number];
}

/** As high as its own largest prompt: small agents need little room. */
function Lane({ session, agent, turns, step, most }: LaneProps) {
  const width = Math.max(step * turns.length, 60);
  const largest = Math.max(...turns.map((turn) => (turn.agent === agent ? turn.input : 0)));
  const base = MARK_PX + Math.max(MIN_UP_PX, Math.ceil((largest / most[0]) * UP_PX));
  const height = base + DOWN_PX;
  return (
    <div class="lane">
      <p class="lane-name">{agent === "" ? MAIN_AGENT : agent}</p>
      <svg width={width} height={height} viewBox={`0 0 ${width} ${height}`} aria-hidden="true">
        <line x1="0" x2={width} y1={base} y2={base} class="base" />
        {turns.map((turn, index) =>
          turn.agent === agent ? (
            <Turn
              key={turn.id}
              href={hrefOfTurn(turn, session)}
              turn={turn}
              x={index * step}
              width={step}
              base={base}
              most={most}
            />
          ) : null,
        )}
      </svg>
    </div>
  );
}

function hrefOfTurn({ id, outcome }: TurnRow, session: string): string {
  return outcome === "refused" ? hrefOf(["live", id]) : hrefOf(["requests", id], { period: "all", session });
}

function Turn({
  href,
  turn,
  x,
  width,
  base,
  most: [mostIn, mostOut],
}: {
  readonly href: string;
  readonly turn: TurnRow;
  readonly x: number;
  readonly width: number;
  /** Where the line is. */
  readonly base: number;
  readonly most: readonly [number, number];
}) {
  const { input, cached, output, missed, outcome, limit } = turn;
  const bar = Math.max(1, width - (width > 6 ? 2 : 1));
  const [readPx, newPx] = [cached, input - cached].map((tokens) => (tokens / mostIn) * UP_PX);
  const outPx = Math.max(output > 0 ? 1 : 0, (output / mostOut) * DOWN_PX);
  return (
    <a href={href} tabIndex={-1}>
      <title>{describeTurn(turn)}</title>
      <rect class="hit" x={x} y="0" width={width} height={base + DOWN_PX} />
      <rect class="t-cached" x={x} y={base - (readPx ?? 0)} width={bar} height={readPx} />
      <rect class="t-new" x={x} y={base - (readPx ?? 0) - (newPx ?? 0)} width={bar} height={newPx} />
      <rect class="t-output" x={x} y={base + 1} width={bar} height={outPx} />
      {missed !== undefined && <circle class="t-missed" cx={x + bar / 2} cy="5" r="3" />}
      {isFailed(outcome) && <rect class="t-failed" x={x} y={base - 6} width={bar} height="12" />}
      {limit && <rect class="t-limit" x={x} y="0" width={Math.min(3, bar)} height={base + DOWN_PX} />}
    </a>
  );
}

function describeTurn({
  time,
  model,
  input,
  cached,
  output,
  charge_usd: charge,
  missed,
  outcome,
  limit,
}: TurnRow): string {
  if (outcome === "refused") return `${formatClock(Date.parse(time))}, ${model}, refused\n${limit ?? ""}`;
  return [
    `${formatClock(Date.parse(time))}, ${model}`,
    ...(limit ? [limit] : []),
    `${formatCount(input)} tokens in, ${formatCount(cached)} of them cached, ${formatCount(output)} out`,
    charge === null ? "charge not known" : formatUsd(charge, 4),
    ...(missed === undefined
      ? []
      : [`missed ${formatCount(missed.tokens)} tokens: ${missed.because.replaceAll("_", " ")}`]),
    ...(outcome === "complete" ? [] : [outcome.replaceAll("_", " ")]),
  ].join("\n");
}
