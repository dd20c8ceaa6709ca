// What the prompts of a session consisted of: a stacked bar for each request.

import type { SessionReply } from "../../api.ts";
import { Swatch, useWidth } from "./basic.tsx";
import { colourAt } from "./colours.ts";
import { formatShort } from "./format.ts";

const HEIGHT = 80;
const MAX_STEP_PX = 18;

const KIND_TITLES: Readonly<Record<string, string>> = {
  system: "system prompt",
  tool: "tool definitions",
  user: "messages of the user",
  assistant: "answers",
  call: "calls of tools",
  result: "results of tools",
};

export function ContextBars({ context }: { readonly context: SessionReply["context"] }) {
  const found = new Set(context.flatMap(({ tokens }) => Object.keys(tokens)));
  const kinds = [...new Set([...Object.keys(KIND_TITLES), ...found])].filter((kind) => found.has(kind));
  const [box, room] = useWidth();
  const step = Math.max(4, Math.min(MAX_STEP_PX, room / context.length));
  const width = step * context.length;
  const most = Math.max(1, ...context.map(({ tokens }) => sum(Object.values(tokens))));
  const last = context.at(-1)?.tokens ?? {};
  return (
    <figure class="timeline">
      <div class="scroll" ref={box} tabIndex={0} role="region" aria-label="Context of each request">
        <svg width={width} height={HEIGHT} viewBox={`0 0 ${width} ${HEIGHT}`} aria-hidden="true">
          {context.map(({ id, tokens }, index) => {
            let y = HEIGHT;
            return (
              <g key={id}>
                {kinds.map((kind, at) => {
                  const height = ((tokens[kind] ?? 0) / most) * HEIGHT;
                  y -= height;
                  return (
                    <rect
                      key={kind}
                      style={{ fill: colourAt(at) }}
                      x={index * step}
                      y={y}
                      width={Math.max(1, step - 1)}
                      height={height}
                    />
                  );
                })}
              </g>
            );
          })}
        </svg>
      </div>
      <figcaption>
        <p class="quiet">Tokens of the last prompt, estimated by the length of its parts:</p>
        <ul class="keys-of">
          {kinds.map((kind, at) => (
            <li key={kind}>
              <Swatch colour={colourAt(at)} /> {KIND_TITLES[kind] ?? kind.replaceAll("_", " ")}{" "}
              {formatShort(last[kind] ?? 0)}
            </li>
          ))}
        </ul>
      </figcaption>
    </figure>
  );
}

function sum(counts: readonly number[]): number {
  return counts.reduce((total, count) => total + count, 0);
}
