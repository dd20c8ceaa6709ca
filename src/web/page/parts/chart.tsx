// Values over time by name, drawn by uPlot: stacked bars, or lines for latencies, which cannot be added up. A table has the
// same numbers, and shows those of the span under the pointer.

import { useEffect, useRef, useState } from "preact/hooks";
import Plot from "uplot";
import { addDecimals, formatDecimal, parseDecimal } from "../../../lib/money.ts";
import type { Measure, Overview } from "../../api.ts";
import { go } from "../state/route.ts";
import { Head, Swatch } from "./basic.tsx";
import { colourNames } from "./colours.ts";
import {
  formatChange,
  formatMeasure,
  formatRate,
  formatSpanName,
  formatUsd,
  MEASURE_TITLES,
  nameOf,
} from "./format.ts";

type Bars = Pick<Overview, "by" | "spans" | "series" | "show">;

interface ChartProps {
  readonly bars: Bars;
  readonly label: string;
  readonly linkTo: LinkTo;
}

/** Where an amount leads: of one span, or of the whole period; of one name, or of all. Null: nowhere. */
export type LinkTo = (at: number | null, name: string | null) => string | null;

export function Chart({ bars, label, linkTo }: ChartProps) {
  const [at, setAt] = useState<number | null>(null);
  const box = useRef<HTMLDivElement>(null);
  const plot = usePlot(box, bars, setAt);
  const open = (name: string | null): void => {
    const href = at === null ? null : (linkTo(at, name) ?? linkTo(at, null));
    if (href !== null) go(href);
  };
  const move = (event: KeyboardEvent): void => {
    if (event.key === "Enter") open(null);
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
        aria-label={`${label}. The arrow keys move through the time, Enter opens it; tables follow.`}
        onKeyDown={move}
        onClick={() => open(at === null ? null : findName(bars, at, plot.current))}
      />
      <figcaption>
        <Legend bars={bars} at={at} linkTo={linkTo} />
        <AsTable bars={bars} label={label} linkTo={linkTo} />
      </figcaption>
    </figure>
  );
}

/** The part of the bar under the pointer. */
function findName({ series, show }: Bars, at: number, plot: Plot | null): string | null {
  if (plot === null || show === "latency") return null;
  let left = plot.posToVal(plot.cursor.top ?? 0, "y");
  for (const { name, values } of series) {
    left -= Number(values[at] ?? 0);
    if (left < 0) return name;
  }
  return null;
}

function sum(amounts: readonly (string | null)[]): string {
  const all = amounts.flatMap((amount) => (amount === null ? [] : [parseDecimal(amount)]));
  return formatDecimal(all.reduce(addDecimals, parseDecimal("0")));
}

function sumSpan(series: Bars["series"], at: number): string {
  return sum(series.map(({ values }) => values[at] ?? null));
}

/** The names with their amounts: of one span, or of the whole period with what it was before. */
function Legend({
  bars: { by, spans, series, show },
  at,
  linkTo,
}: Pick<ChartProps, "bars" | "linkTo"> & { readonly at: number | null }) {
  const span = at === null ? undefined : spans[at];
  const isAdded = show !== "latency";
  const all = sum(series.map(({ total }) => total));
  const before = series.flatMap((each) => each.before ?? []);
  const together = {
    total: all,
    before: before.length < series.length ? null : sum(before),
    values: spans.map((_, index) => sumSpan(series, index)),
    unpriced: false,
  };
  const colours = colourNames(
    by,
    series.map(({ name }) => name),
  );
  return (
    <table class="names">
      <Head
        columns={[
          [span === undefined ? "Whole period" : formatSpanName(span, "long")],
          [isAdded ? MEASURE_TITLES[show] : "Median", "number"],
          [isAdded ? "Share" : "95 %", "number"],
          ...(isAdded ? ([["Change", "number more"]] as const) : []),
        ]}
      />
      <tbody>
        {series.map((each, index) => (
          <tr key={each.name}>
            <th scope="row">
              <Swatch colour={colours[index] ?? ""} />
              <Linked text={nameOf(each.name)} href={linkTo(at, each.name)} />
            </th>
            <Values series={each} show={show} at={at} all={all} />
          </tr>
        ))}
      </tbody>
      {isAdded && (
        <tfoot>
          <tr>
            <th scope="row">
              <Linked text="All together" href={linkTo(at, null)} />
            </th>
            <Values series={together} show={show} at={at} all={all} />
          </tr>
        </tfoot>
      )}
    </table>
  );
}

interface ValuesProps {
  readonly show: Measure;
  readonly at: number | null;
  /** The sum of all series. */
  readonly all: string;
}

function Values({
  series: { total, before, values, unpriced, p95 },
  show,
  at,
  all,
}: ValuesProps & { readonly series: Omit<Bars["series"][number], "name" | "requests"> }) {
  const value = at === null ? total : (values[at] ?? null);
  const share = Number(all) === 0 ? "–" : formatRate(Number(total) / Number(all));
  return (
    <>
      <td class="number">{unpriced ? "no price" : writeValue(show, value)}</td>
      <td class="number">{show === "latency" ? formatMeasure(show, `${p95 ?? 0}`) : share}</td>
      {show !== "latency" && (
        <td class="number quiet more">{(before !== null && formatChange(total, before)) || "–"}</td>
      )}
    </>
  );
}

function Linked({ text, href }: { readonly text: string; readonly href: string | null }) {
  if (href === null) return <span class="name">{text}</span>;
  return (
    <a class="name" title={text} href={href}>
      {text}
    </a>
  );
}

/** An amount of the table, which the keyboard reaches by its row and its column. */
function Amount({ text, href }: { readonly text: string; readonly href: string | null }) {
  return (
    <td class="number">
      {href === null || text === "–" ? (
        text
      ) : (
        <a href={href} tabIndex={-1}>
          {text}
        </a>
      )}
    </td>
  );
}

function writeValue(show: Measure, value: string | null): string {
  return value === null ? "–" : formatMeasure(show, value);
}

function writeExact(show: Measure, value: string | null): string {
  return value === null ? "–" : show === "cost" ? formatUsd(value, 4) : formatMeasure(show, value);
}

function AsTable({ bars, label, linkTo }: ChartProps) {
  const { spans, series, show } = bars;
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
                  <Linked text={nameOf(name)} href={linkTo(null, name)} />
                </th>
              ))}
              {show !== "latency" && (
                <th scope="col" class="number">
                  Total
                </th>
              )}
            </tr>
          </thead>
          <tbody>
            {[...spans.keys(), null].map((at) => (
              <TableRow key={at} bars={bars} at={at} linkTo={linkTo} />
            ))}
          </tbody>
        </table>
      </div>
    </details>
  );
}

/** Of one span, or of the whole period. */
function TableRow({
  bars: { spans, series, show },
  at,
  linkTo,
}: Pick<ChartProps, "bars" | "linkTo"> & Pick<ValuesProps, "at">) {
  const title = at === null ? "Whole period" : formatSpanName(spans[at] ?? "", "long");
  const all = series.map(({ values, total }) => (at === null ? total : (values[at] ?? null)));
  const cells = series.map(({ name, unpriced }, index) => (
    <Amount
      key={name}
      text={unpriced ? "no price" : writeExact(show, all[index] ?? null)}
      href={linkTo(at, name)}
    />
  ));
  return (
    <tr>
      <th scope="row">
        <Linked text={title} href={linkTo(at, null)} />
      </th>
      {cells}
      {show !== "latency" && <Amount text={writeExact(show, sum(all))} href={linkTo(at, null)} />}
    </tr>
  );
}

/** A new plot for new series; only new data where the series are the same. */
function usePlot(
  box: { readonly current: HTMLDivElement | null },
  bars: Bars,
  see: (at: number | null) => void,
) {
  const plot = useRef<Plot | null>(null);
  const form = JSON.stringify([bars.by, bars.show, bars.spans, bars.series.map(({ name }) => name)]);
  const data = bars.show === "latency" ? listLines(bars) : stack(bars);
  const scheme = useColourScheme();
  useEffect(() => {
    const { current } = box;
    if (current === null) return undefined;
    const made = new Plot(describePlot(bars, current, see), data, current);
    plot.current = made;
    const resize = new ResizeObserver(() =>
      made.setSize({ width: current.clientWidth, height: current.clientHeight }),
    );
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
  const stacked = series.map(({ values }) =>
    values.map((value, index) => {
      sums[index] = (sums[index] ?? 0) + Number(value);
      return sums[index];
    }),
  );
  return [spans.map((_, index) => index), ...stacked.toReversed()];
}

function listLines({ spans, series }: Bars): Plot.AlignedData {
  const lines = series.map(({ values }) => values.map((value) => (value === null ? null : Number(value))));
  return [spans.map((_, index) => index), ...lines.toReversed()];
}

function describePlot(
  { by, spans, series, show }: Bars,
  box: HTMLElement,
  see: (at: number | null) => void,
): Plot.Options {
  const colours = getComputedStyle(box);
  const read = (name: string): string => colours.getPropertyValue(name).trim();
  const axis = { stroke: read("--quiet"), font: `12px ${read("--font")}`, ticks: { show: false } };
  // The canvas knows no variables.
  const fills = colourNames(
    by,
    series.map(({ name }) => name),
  ).map((colour) => read(colour.slice("var(".length, -1)));
  const colourOf = (index: number): string => fills[series.length - 1 - index] ?? "";
  const bar = Plot.paths.bars?.({ size: [0.7, 56], align: 0 });
  return {
    width: box.clientWidth,
    height: box.clientHeight,
    legend: { show: false },
    padding: [12, 18, 0, 0],
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
        size: 60,
        grid: { stroke: read("--line"), width: 1 },
        values: (_, ticks) => ticks.map((tick) => formatTick(show, tick)),
      },
    ],
    series: [
      {},
      ...series.map((_, index) =>
        show === "latency"
          ? { stroke: colourOf(index), width: 2, spanGaps: true, points: { show: true, size: 5 } }
          : {
              fill: colourOf(index),
              width: 0,
              points: { show: false },
              ...(bar !== undefined && { paths: bar }),
            },
      ),
    ],
    hooks: { setCursor: [({ cursor }) => see(cursor.idx ?? null)] },
  };
}

function formatTick(show: Measure, value: number): string {
  if (show !== "cost") return formatMeasure(show, `${value}`);
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
