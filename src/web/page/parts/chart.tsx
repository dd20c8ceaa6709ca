// Values over time by name, drawn by uPlot: stacked bars, or lines for latencies, which cannot be added up. A table has the
// same numbers, and shows those of the span under the pointer.

import { useEffect, useRef, useState } from "preact/hooks";
import Plot from "uplot";
import { addDecimals, formatDecimal, parseDecimal } from "../../../lib/money.ts";
import type { Overview, Series } from "../../api.ts";
import { go } from "../state/route.ts";
import { Swatch } from "./basic.tsx";
import { Amount, type Column, Table } from "./table.tsx";
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

/** A series, or all of them. */
interface Line extends Pick<Series, "total" | "before" | "values"> {
  readonly name: string | null;
  readonly p95?: number;
  readonly unpriced?: boolean;
}

/** All series and their sum. Latencies have none. */
function listLines({ series, spans, show }: Bars): readonly Line[] {
  if (show === "latency") return series;
  const before = series.flatMap((each) => each.before ?? []);
  const together = {
    name: null,
    total: sum(series.map(({ total }) => total)),
    before: before.length < series.length ? null : sum(before),
    values: spans.map((_, at) => sum(series.map(({ values }) => values[at] ?? null))),
  };
  return [...series, together];
}

function valueOf(
  { total, values, unpriced }: Line,
  at: number | null,
  write: (value: string) => string,
): string {
  const value = at === null ? total : (values[at] ?? null);
  return unpriced === true ? "no price" : value === null ? "–" : write(value);
}

/** The names with their amounts and shares: of one span, or of the whole period with the change since the one before. */
function Legend({ bars, at, linkTo }: Pick<ChartProps, "bars" | "linkTo"> & { readonly at: number | null }) {
  const { by, spans, series, show } = bars;
  const lines = listLines(bars);
  const names = series.map(({ name }) => name);
  const colours = new Map(colourNames(by, names).map((colour, index) => [names[index], colour]));
  const isAdded = show !== "latency";
  const amountOf = ({ total, values }: Line) => Number((at === null ? total : values[at]) ?? 0);
  const sumLine = lines.at(-1);
  const all = sumLine === undefined ? 0 : amountOf(sumLine);
  const span = at === null ? undefined : spans[at];
  const columns: readonly Column<Line>[] = [
    [
      span === undefined ? "Whole period" : formatSpanName(span, "long"),
      "",
      ({ name }) => (
        <>
          {name !== null && <Swatch colour={colours.get(name) ?? ""} />}
          <Linked text={name === null ? "All together" : nameOf(name)} href={linkTo(at, name)} />
        </>
      ),
    ],
    [
      isAdded ? MEASURE_TITLES[show] : "Median",
      "number",
      (line) => valueOf(line, at, (value) => formatMeasure(show, value)),
    ],
    isAdded
      ? ["Share", "number", (line) => (all === 0 ? null : formatRate(amountOf(line) / all))]
      : ["95 %", "number", ({ p95 }) => formatMeasure(show, `${p95 ?? 0}`)],
    ...(isAdded ? [[...CHANGE, at === null ? readChange : () => null] as const] : []),
  ];
  return (
    <Table name="Names" columns={columns} rows={lines} keyOf={keyOfLine} describe={describeLine} small />
  );
}

const CHANGE = ["Change", "number more"] as const;

const readChange = ({ before, total }: Line) => before && formatChange(total, before);

function keyOfLine({ name }: Line): string {
  return name === null ? "all" : `=${name}`;
}

function describeLine({ name }: Line): { readonly class?: string } {
  return name === null ? { class: "sum" } : {};
}

function Linked({ text, href }: { readonly text: string; readonly href: string | null }) {
  if (href === null) return <span class="name">{text}</span>;
  return (
    <a class="name" title={text} href={href}>
      {text}
    </a>
  );
}

function AsTable({ bars, label, linkTo }: ChartProps) {
  const { spans, show } = bars;
  const write = (value: string): string =>
    show === "cost" ? formatUsd(value, 4) : formatMeasure(show, value);
  const columns: readonly Column<number | null>[] = [
    [
      "Time",
      "",
      (at) => (
        <Linked
          text={at === null ? "Whole period" : formatSpanName(spans[at] ?? "", "long")}
          href={linkTo(at, null)}
        />
      ),
    ],
    ...listLines(bars).map((line): Column<number | null> => [
      line.name === null ? "Total" : nameOf(line.name),
      "number",
      (at) => {
        const [text, href] = [valueOf(line, at, write), linkTo(at, line.name)];
        return href === null || text === "–" ? text : <Amount text={text} href={href} />;
      },
    ]),
  ];
  return (
    <details>
      <summary>As a table</summary>
      <Table
        name={`${label}, as a table`}
        columns={columns}
        rows={[...spans.keys(), null]}
        keyOf={(at) => `${at}`}
      />
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
  const form = JSON.stringify([bars.by, bars.show, bars.spans, bars.series.map(({ name }) => name)]);
  const data = bars.show === "latency" ? drawLines(bars) : stack(bars);
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

function drawLines({ spans, series }: Bars): Plot.AlignedData {
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

function formatTick(show: Bars["show"], value: number): string {
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
