// A session over its turns: a lane for each agent, a bar for each request. What was read from the cache, what was sent anew,
// and below the line what was answered. The same rows are in the view of requests, for everybody whom a picture does not serve.

import type { RequestRow } from "../../api.ts";
import { hrefOf } from "../state/route.ts";
import { formatClock, formatCount, formatMoment, formatShort, formatUsd } from "./format.ts";

const UP_PX = 56;
const DOWN_PX = 18;
const MARK_PX = 10;
const MIN_UP_PX = 12;
const MIN_STEP_PX = 4;
const MAX_STEP_PX = 18;
const ROOM_PX = 680;

/** `turns`: the oldest first. `agents`: in the order of their tree; empty is the main agent. */
export function Timeline({
  turns,
  agents,
}: {
  readonly turns: readonly RequestRow[];
  readonly agents: readonly string[];
}) {
  const used = agents.filter((agent) => turns.some((turn) => turn.agent === agent));
  const step = Math.max(MIN_STEP_PX, Math.min(MAX_STEP_PX, ROOM_PX / Math.max(1, turns.length)));
  const mostIn = Math.max(1, ...turns.map(({ input }) => input));
  const mostOut = Math.max(1, ...turns.map(({ output }) => output));
  const [first] = turns;
  const last = turns.at(-1);
  return (
    <figure class="timeline">
      <div class="scroll" tabIndex={0} role="region" aria-label="Timeline">
        {used.map((agent) => (
          <Lane key={agent} agent={agent} turns={turns} step={step} most={[mostIn, mostOut]} />
        ))}
      </div>
      <figcaption>
        {first !== undefined && last !== undefined && (
          <p class="quiet ends">
            <span>{formatMoment(Date.parse(first.time))}</span>
            <span>{formatMoment(Date.parse(last.time))}</span>
          </p>
        )}
        <ul class="keys-of">
          <li>
            <span class="swatch t-cached" aria-hidden="true" /> read from the cache
          </li>
          <li>
            <span class="swatch t-new" aria-hidden="true" /> new, up to {formatShort(mostIn)}
          </li>
          <li>
            <span class="swatch t-output" aria-hidden="true" /> output, up to {formatShort(mostOut)}
          </li>
          <li>
            <span class="swatch t-missed" aria-hidden="true" /> missed the cache
          </li>
          <li>
            <span class="swatch t-failed" aria-hidden="true" /> failed
          </li>
        </ul>
      </figcaption>
    </figure>
  );
}

/** As high as its own largest prompt: small agents need little room. */
function Lane({
  agent,
  turns,
  step,
  most,
}: {
  readonly agent: string;
  readonly turns: readonly RequestRow[];
  readonly step: number;
  readonly most: readonly [number, number];
}) {
  const width = Math.max(step * turns.length, 60);
  const largest = Math.max(...turns.map((turn) => (turn.agent === agent ? turn.input : 0)));
  const base = MARK_PX + Math.max(MIN_UP_PX, Math.ceil((largest / most[0]) * UP_PX));
  const height = base + DOWN_PX;
  return (
    <div class="lane">
      <p class="lane-name">{agent === "" ? "main agent" : agent}</p>
      <svg width={width} height={height} viewBox={`0 0 ${width} ${height}`} aria-hidden="true">
        <line x1="0" x2={width} y1={base} y2={base} class="base" />
        {turns.map((turn, index) =>
          turn.agent === agent ? (
            <Turn key={turn.id} turn={turn} x={index * step} width={step} base={base} most={most} />
          ) : null,
        )}
      </svg>
    </div>
  );
}

function Turn({
  turn,
  x,
  width,
  base,
  most: [mostIn, mostOut],
}: {
  readonly turn: RequestRow;
  readonly x: number;
  readonly width: number;
  /** Where the line is. */
  readonly base: number;
  readonly most: readonly [number, number];
}) {
  const { id, input, cached, output, missed, outcome } = turn;
  const bar = Math.max(1, width - (width > 6 ? 2 : 1));
  const [readPx, newPx] = [cached, input - cached].map((tokens) => (tokens / mostIn) * UP_PX);
  const outPx = Math.max(output > 0 ? 1 : 0, (output / mostOut) * DOWN_PX);
  const isFailed = outcome !== "complete" && outcome !== "client_closed";
  return (
    <a href={hrefOf(["requests", id], { period: "all", session: turn.session })} tabIndex={-1}>
      <title>{describeTurn(turn)}</title>
      <rect class="hit" x={x} y="0" width={width} height={base + DOWN_PX} />
      <rect class="t-cached" x={x} y={base - (readPx ?? 0)} width={bar} height={readPx} />
      <rect class="t-new" x={x} y={base - (readPx ?? 0) - (newPx ?? 0)} width={bar} height={newPx} />
      <rect class="t-output" x={x} y={base + 1} width={bar} height={outPx} />
      {missed !== undefined && <circle class="t-missed" cx={x + bar / 2} cy="5" r="3" />}
      {isFailed && <rect class="t-failed" x={x} y={base - 6} width={bar} height="12" />}
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
}: RequestRow): string {
  return [
    `${formatClock(Date.parse(time))}, ${model}`,
    `${formatCount(input)} tokens in, ${formatCount(cached)} of them cached, ${formatCount(output)} out`,
    charge === null ? "charge not known" : formatUsd(charge, 4),
    ...(missed === undefined
      ? []
      : [`missed ${formatCount(missed.tokens)} tokens: ${missed.because.replaceAll("_", " ")}`]),
    ...(outcome === "complete" ? [] : [outcome.replaceAll("_", " ")]),
  ].join("\n");
}
