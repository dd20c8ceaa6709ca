// Stacked bars over time, drawn by uPlot. The same numbers are in a table behind the plot, for everybody whom a picture
// does not serve.

import { useEffect, useRef, useState } from "preact/hooks";
import Plot from "uplot";
import type { Overview } from "../../api.ts";
import { addDecimals, formatDecimal, parseDecimal } from "../../../lib/money.ts";
import { colourNames } from "./colours.ts";
import { formatSpanName, formatSum, formatUsd, nameOf } from "./format.ts";

const HEIGHT = 260;

type Bars = Pick<Overview, "spans" | "series">;

export function StackedBars({ bars, label }: { readonly bars: Bars; readonly label: string }) {
  const [at, setAt] = useState<number | null>(null);
  const box = useRef<HTMLDivElement>(null);
  const plot = usePlot(box, bars, setAt);
  const move = (event: KeyboardEvent): void => {
    const step = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
    if (step === 0) return;
    event.preventDefault();
    const last = bars.spans.length - 1;
    const next = at === null ? last : Math.min(last, Math.max(0, at + step));
    plot.current?.setCursor({ left: plot.current.valToPos(next, "x"), top: 0 });
  };
  return (
    <figure class="plot">
      <div
        ref={box}
        class="canvas"
        role="img"
        tabIndex={0}
        aria-label={`${label}. The arrow keys move through the bars; a table follows.`}
        onKeyDown={move}
      />
      <figcaption>
        <Legend bars={bars} at={at} />
        <AsTable bars={bars} label={label} />
      </figcaption>
    </figure>
  );
}

function sum(amounts: readonly string[]): string {
  return formatDecimal(amounts.map(parseDecimal).reduce(addDecimals, parseDecimal("0")));
}

function sumSpan(series: Bars["series"], at: number): string {
  return sum(series.map(({ charges }) => charges[at] ?? "0"));
}

/** The amounts of one bar, or of all together. */
function Legend({ bars, at }: { readonly bars: Bars; readonly at: number | null }) {
  const { spans, series } = bars;
  const span = at === null ? undefined : spans[at];
  const total = at === null ? sum(series.map(({ charge_usd: all }) => all)) : sumSpan(series, at);
  const colours = colourNames(series.map(({ name }) => name));
  return (
    <div class="legend">
      <p class="legend-title" aria-live="polite">
        <span>{span === undefined ? "All together" : formatSpanName(span, "long")}</span>
        <b class="number">{formatSum(total)}</b>
      </p>
      <ul>
        {series.map(({ name, charge_usd: all, charges, unpriced }, index) => (
          <li key={name}>
            <span class={`swatch c${colours[index] ?? 0}`} aria-hidden="true" />
            <span class="name">{nameOf(name)}</span>
            <span class="number">
              {unpriced ? "no price" : formatUsd(at === null ? all : (charges[at] ?? "0"))}
            </span>
          </li>
        ))}
      </ul>
    </div>
  );
}

function AsTable({ bars: { spans, series }, label }: { readonly bars: Bars; readonly label: string }) {
  return (
    <details>
      <summary>As a table</summary>
      <div class="scroll" tabIndex={0} role="region" aria-label={`${label}, as a table`}>
        <table>
          <thead>
            <tr>
              <th scope="col">Time</th>
              {series.map(({ name }) => (
                <th scope="col" class="number name" title={name} key={name}>
                  {nameOf(name)}
                </th>
              ))}
              <th scope="col" class="number">
                Total
              </th>
            </tr>
          </thead>
          <tbody>
            {spans.map((span, index) => (
              <tr key={span}>
                <th scope="row">{formatSpanName(span, "long")}</th>
                {series.map(({ name, charges, unpriced }) => (
                  <td class="number" key={name}>
                    {unpriced ? "no price" : formatUsd(charges[index] ?? "0", 4)}
                  </td>
                ))}
                <td class="number">{formatUsd(sumSpan(series, index), 4)}</td>
              </tr>
            ))}
            <tr>
              <th scope="row">Total</th>
              {series.map(({ name, charge_usd: all, unpriced }) => (
                <td class="number" key={name}>
                  {unpriced ? "no price" : formatUsd(all, 4)}
                </td>
              ))}
              <td class="number">{formatUsd(sum(series.map(({ charge_usd: all }) => all)), 4)}</td>
            </tr>
          </tbody>
        </table>
      </div>
    </details>
  );
}

/** A new plot for new series; only new data where the series are the same. */
function usePlot(
  box: { readonly current: HTMLDivElement | null },
  bars: Bars,
  see: (at: number | null) => void,
) {
  const plot = useRef<Plot | null>(null);
  const form = JSON.stringify([bars.spans, bars.series.map(({ name }) => name)]);
  const data = stack(bars);
  const scheme = useColourScheme();
  useEffect(() => {
    const { current } = box;
    if (current === null) return undefined;
    const made = new Plot(describePlot(bars, current, see), data, current);
    plot.current = made;
    const resize = new ResizeObserver(() => made.setSize({ width: current.clientWidth, height: HEIGHT }));
    resize.observe(current);
    return () => {
      resize.disconnect();
      made.destroy();
      plot.current = null;
    };
  }, [form, scheme]);
  useEffect(() => plot.current?.setData(data), [JSON.stringify(data)]);
  return plot;
}

function useColourScheme(): string {
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const [isDark, setDark] = useState(dark.matches);
  useEffect(() => {
    const see = (): void => setDark(dark.matches);
    see();
    dark.addEventListener("change", see);
    return () => dark.removeEventListener("change", see);
  }, []);
  return isDark ? "dark" : "light";
}

/** Each series on top of those before it. They are drawn from the highest to the lowest. */
function stack({ spans, series }: Bars): Plot.AlignedData {
  const sums = spans.map(() => 0);
  const stacked = series.map(({ charges }) =>
    charges.map((charge, index) => {
      sums[index] = (sums[index] ?? 0) + Number(charge);
      return sums[index];
    }),
  );
  return [spans.map((_, index) => index), ...stacked.toReversed()];
}

function describePlot(
  { spans, series }: Bars,
  box: HTMLElement,
  see: (at: number | null) => void,
): Plot.Options {
  const colours = getComputedStyle(box);
  const read = (name: string): string => colours.getPropertyValue(name).trim();
  const axis = { stroke: read("--quiet"), font: `12px ${read("--font")}`, ticks: { show: false } };
  const fills = colourNames(series.map(({ name }) => name));
  const bar = Plot.paths.bars?.({ size: [0.7, 56], align: 0 });
  return {
    width: box.clientWidth,
    height: HEIGHT,
    legend: { show: false },
    padding: [12, 8, 0, 0],
    scales: {
      x: { time: false, range: () => [-0.6, spans.length - 0.4] },
      y: { range: (_, __, max) => [0, max > 0 ? max * 1.05 : 1] },
    },
    cursor: { y: false, points: { show: false }, drag: { x: false, y: false } },
    axes: [
      {
        ...axis,
        size: 28,
        gap: 6,
        grid: { show: false },
        splits: (_, __, from, to) => chooseTicks(spans.length, box.clientWidth, [from, to]),
        values: (_, ticks) => ticks.map((tick) => formatSpanName(spans[tick] ?? "", "short")),
      },
      {
        ...axis,
        size: 56,
        grid: { stroke: read("--line"), width: 1 },
        values: (_, ticks) => ticks.map(formatTick),
      },
    ],
    series: [
      {},
      ...series.map((_, index) => ({
        fill: read(`--c${fills[series.length - 1 - index] ?? 0}`),
        width: 0,
        points: { show: false },
        ...(bar !== undefined && { paths: bar }),
      })),
    ],
    hooks: { setCursor: [({ cursor }) => see(cursor.idx ?? null)] },
  };
}

function formatTick(value: number): string {
  if (value === 0) return "$0";
  return value >= 1 ? `$${value.toLocaleString("en-US")}` : `$${Number(value.toPrecision(3))}`;
}

const TICK_PX = 64;

/** As many names as have room, always at the same distance. The last bar, which is now, has one. */
function chooseTicks(count: number, width: number, [from, to]: readonly [number, number]): number[] {
  const step = Math.max(1, Math.ceil(count / Math.max(1, Math.floor(width / TICK_PX))));
  return Array.from({ length: count }, (_, index) => index).filter(
    (index) => (count - 1 - index) % step === 0 && index >= from && index <= to,
  );
}
