// Values over time by name, as stacked bars of uPlot.

import { useEffect, useRef, useState } from "preact/hooks";
import Plot from "uplot";
import { addDecimals, formatDecimal, parseDecimal } from "../../../lib/money.ts";
import type { Overview, Series } from "../../../billing/reports/overview.ts";
import { OTHERS } from "../../../billing/reports/words.ts";
import { Amount } from "./basic.tsx";
import { type Column, Table } from "./table.tsx";
import { formatCount, formatShort, formatSpanName, listShares, MEASURE_TITLES, nameOf } from "./format.ts";

type Bars = Pick<Overview, "spans" | "series" | "show">;

interface ChartProps {
  readonly bars: Bars;
  readonly label: string;
  /** The address of the requests with this name. Null stands for all names. */
  readonly linkTo: (name: string | null) => string | null;
}

export function Chart({ bars, label, linkTo }: ChartProps) {
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
        aria-label={`${label}. The arrow keys move through time; two tables follow.`}
        onKeyDown={move}
      />
      <figcaption>
        <Legend bars={bars} at={at} linkTo={linkTo} />
        <AsTable bars={bars} label={label} />
      </figcaption>
    </figure>
  );
}

function sum(amounts: readonly string[]): string {
  return formatDecimal(amounts.map(parseDecimal).reduce(addDecimals, parseDecimal("0")));
}

interface Line extends Pick<Series, "total" | "values"> {
  readonly name: string | null;
  readonly unpriced?: boolean;
}

function listLines({ series, spans }: Bars): readonly Line[] {
  const together = {
    name: null,
    total: sum(series.map(({ total }) => total)),
    values: spans.map((_, at) => sum(series.map(({ values }) => values[at] ?? "0"))),
  };
  return [...series, together];
}

function amountOf({ total, values }: Line, at: number | null): string {
  return at === null ? total : (values[at] ?? "0");
}

function Cell({ line, show, at }: Pick<Bars, "show"> & { readonly line: Line; readonly at: number | null }) {
  if (line.unpriced === true) return <>no price</>;
  const value = amountOf(line, at);
  if (show === "cost") return <Amount usd={value} />;
  return <span title={formatCount(Number(value))}>{formatShort(Number(value))}</span>;
}

function Legend({ bars, at, linkTo }: Omit<ChartProps, "label"> & { readonly at: number | null }) {
  const { spans, series, show } = bars;
  const colours = colourNames(series);
  const shares = listShares(series.map((line) => Number(amountOf(line, at))));
  const lines = listLines(bars).map((line, index) => {
    const share = line.unpriced === true || shares.length === 0 ? null : `${shares[index] ?? 100} %`;
    return { ...line, colour: colours[index], share };
  });
  const span = at === null ? undefined : spans[at];
  const columns: readonly Column<(typeof lines)[number]>[] = [
    [
      span === undefined ? "Whole period" : formatSpanName(span, "long"),
      "",
      ({ name, colour }) => {
        const text = name === null ? "All together" : nameOf(name);
        const href = linkTo(name);
        return (
          <>
            {colour !== undefined && <span class="swatch" style={{ background: colour }} />}
            {href === null ? (
              <span class="name">{text}</span>
            ) : (
              <a class="name" title={text} href={href}>
                {text}
              </a>
            )}
          </>
        );
      },
    ],
    [MEASURE_TITLES[show], "number", (line) => <Cell line={line} show={show} at={at} />],
    ["Share", "number", ({ share }) => share],
  ];
  return (
    <Table
      name="Names"
      columns={columns}
      rows={lines}
      keyOf={({ name }) => (name === null ? "all" : `=${name}`)}
      isSum={({ name }) => name === null}
      small
    />
  );
}

function AsTable({ bars, label }: Pick<ChartProps, "bars" | "label">) {
  const { spans, show } = bars;
  const columns: readonly Column<number | null>[] = [
    ["Time", "", (at) => (at === null ? "Whole period" : formatSpanName(spans[at] ?? "", "long"))],
    ...listLines(bars).map((line): Column<number | null> => [
      line.name === null ? "Total" : nameOf(line.name),
      "number",
      (at) => <Cell line={line} show={show} at={at} />,
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

function usePlot(
  box: { readonly current: HTMLDivElement | null },
  bars: Bars,
  see: (at: number | null) => void,
) {
  const plot = useRef<Plot | null>(null);
  const form = JSON.stringify([bars.show, bars.spans, bars.series.map(({ name }) => name)]);
  const data = stack(bars);
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

/** The tallest bars come first, so that the others are drawn over them. */
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

function describePlot(
  { spans, series, show }: Bars,
  box: HTMLElement,
  see: (at: number | null) => void,
): Plot.Options {
  const colours = getComputedStyle(box);
  const read = (name: string): string => colours.getPropertyValue(name).trim();
  const axis = { stroke: read("--quiet"), font: `12px ${read("--font")}`, ticks: { show: false } };
  // A canvas knows no CSS variables.
  const fills = colourNames(series).map((colour) => read(colour.slice("var(".length, -1)));
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
        size: (_, ticks) => 16 + 7 * Math.max(4, ...(ticks ?? []).map(({ length }) => length)),
        grid: { stroke: read("--line"), width: 1 },
        values: (_, ticks) => formatTicks(show, ticks),
      },
    ],
    series: [
      {},
      ...series.map((_, index) => ({
        fill: colourOf(index),
        width: 0,
        points: { show: false },
        ...(bar !== undefined && { paths: bar }),
      })),
    ],
    hooks: { setCursor: [({ cursor }) => see(cursor.idx ?? null)] },
  };
}

/** Such as `$0`, `$2`, or `$0.00`, `$0.50`. */
function formatTicks(show: Bars["show"], ticks: readonly number[]): string[] {
  if (show !== "cost") return ticks.map(formatShort);
  const fractions = ticks.map((tick) => String(Number(tick.toPrecision(3))).split(".")[1] ?? "");
  const longest = Math.max(...fractions.map(({ length }) => length));
  const places = longest === 1 ? 2 : longest;
  const form = { minimumFractionDigits: places, maximumFractionDigits: places };
  return ticks.map((tick) => `$${tick.toLocaleString("en-US", form)}`);
}

const TICK_PX = 64;

function chooseTicks(count: number, width: number, [from, to]: readonly [number, number]): number[] {
  const step = Math.max(1, Math.ceil(count / Math.max(1, Math.floor(width / TICK_PX))));
  return Array.from({ length: count }, (_, index) => index).filter(
    (index) => (count - 1 - index) % step === 0 && index >= from && index <= to,
  );
}

const COLOURS = 10;

/** A name's hash chooses its colour, or the next one if that is taken. */
function colourNames(series: Bars["series"]): readonly string[] {
  const used = new Set<number>();
  return series.map(({ name }) => {
    if (name === OTHERS) return "var(--c-others)";
    let place = hash(name) % COLOURS;
    while (used.has(place) && used.size < COLOURS) place = (place + 1) % COLOURS;
    used.add(place);
    return `var(--c${place})`;
  });
}

function hash(name: string): number {
  let sum = 7;
  for (let at = 0; at < name.length; at += 1) sum = (sum * 31 + name.charCodeAt(at)) % 9973;
  return sum;
}
