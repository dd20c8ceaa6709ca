// The file of `gateway report`: a page without network, or Markdown.

import type { Evidence, EvidenceEvent, EvidenceSum } from "../billing/reports/evidence.ts";
import { countOf, formatCount, formatShort, formatUsd } from "./page/parts/format.ts";
import STYLE from "./report-file.css" with { type: "text" };

interface TextTable {
  readonly title: string;
  readonly note?: string;
  /** A `#` before a name marks a column of numbers. */
  readonly head: readonly string[];
  readonly rows: ReadonlyArray<readonly string[]>;
}

function describeContent({ has_labels: hasLabels }: Evidence): readonly [inIt: string, notInIt: string] {
  const [own, others] = hasLabels ? [", labels", ""] : ["", ", labels, paths"];
  return [
    "Counts of tokens, times (UTC), amounts in USD, " +
      `ids of requests, names and versions of tools and models${own}.`,
    `Prompts, answers, secrets${others}, and the names of keys, channels and users. ` +
      "Uncommon names are replaced by words such as model-1a2b3c4d, unusual ids by the gateway's own.",
  ];
}

const TITLE = "What the prompt cache missed";

function writeTitle({ session }: Evidence): string {
  return session === null ? TITLE : `${TITLE} in session ${session}`;
}

function formatTime(time: string | null): string {
  return time === null ? "" : time.slice(0, 16).replace("T", " ");
}

function listFacts({ requests, sessions, first, last, versions, events }: Evidence): string[] {
  const tools = [...new Set([...versions, ...events].flatMap(({ tool }) => tool ?? []))];
  return [
    `${formatTime(first)} to ${formatTime(last)} UTC`,
    countOf(requests, "request"),
    countOf(sessions, "session"),
    ...tools.slice(0, 4),
  ];
}

/** Rounded down: 100 % means all of it. */
function formatShare({ input, cached }: EvidenceSum): string {
  return input === 0 ? "" : `${Math.floor((100 * cached) / input)} %`;
}

const NO_PRICE = "no price";

function formatLost(usd: string, tokens: number, unpriced: number): string {
  if (unpriced === 0) return formatUsd(usd);
  return unpriced === tokens ? NO_PRICE : `at least ${formatUsd(usd)}`;
}

function listFigures({ paid_again: lost, total, window_points: points }: Evidence): [string, string][] {
  const { charge_usd: charge, official_usd: official, turns, unpriced } = total;
  const others = [
    ...(official === charge ? [] : [`${formatUsd(official)} by official prices`]),
    ...(unpriced === 0 ? [] : [`${countOf(unpriced, "request")} without a price`]),
  ].join("; ");
  const charged =
    unpriced === turns ? "" : `, of ${formatUsd(charge)} charged${others === "" ? "" : ` (${others})`}`;
  const share = total.input === 0 ? "0" : ((100 * lost.tokens) / total.input).toFixed(1);
  return [
    [
      formatShort(lost.tokens),
      "tokens paid again although the cache had them: " +
        `${share} % of all input, in ${countOf(lost.misses, "request")}`,
    ],
    [
      formatLost(lost.usd, lost.tokens, lost.unpriced_tokens),
      `${lost.tokens > 0 && lost.unpriced_tokens === lost.tokens ? "for these tokens" : "more than reading them would have cost"}${charged}`,
    ],
    ...describePoints(Object.entries(points)),
    ...(total.input === 0
      ? []
      : [[formatShare(total), "of all input was read from the cache"] satisfies [string, string]]),
  ];
}

function describePoints([first, ...others]: readonly [name: string, rise: number][]): [string, string][] {
  if (first === undefined) return [];
  const more = others.map(([name, rise]) => `, and ${rise} to its window of ${name}`).join("");
  return [
    [
      countOf(first[1], "point"),
      `of 100, added by these requests to the plan's window of ${first[0]}${more}`,
    ],
  ];
}

function describeTool({ tool, version }: Pick<EvidenceEvent, "tool" | "version">): string {
  return [tool ?? "unknown", ...(version === null ? [] : [version])].join(" ");
}

const SUM_HEAD = ["#turns", "#input a turn", "#cached", "#tokens missed", "#that cost"];

function sayLeft(number: number, what: string): string {
  if (number === 0) return "";
  return `Only the rows with the most ${what}. Not shown: ${formatCount(number)} more.`;
}

function tableOfSums<Row extends EvidenceSum>(
  title: string,
  rows: readonly Row[],
  more: number,
  columns: Readonly<Record<string, (row: Row) => string>>,
): TextTable {
  const reads = Object.values(columns);
  return {
    title,
    note: sayLeft(more, "input"),
    head: [...Object.keys(columns), ...SUM_HEAD],
    rows: rows.map((row) => [
      ...reads.map((read) => read(row)),
      formatCount(row.turns),
      formatCount(Math.round(row.input / row.turns)),
      formatShare(row),
      formatCount(row.missed_tokens),
      row.unpriced === row.turns
        ? NO_PRICE
        : formatLost(row.missed_usd, row.missed_tokens, row.unpriced_tokens),
    ]),
  };
}

function listTables(report: Evidence): TextTable[] {
  const {
    events,
    causes,
    versions,
    models,
    has_labels: hasLabels,
    more_misses: more,
    more_rows: left,
  } = report;
  return [
    {
      title: "Events",
      note:
        more > 0
          ? "The most expensive misses, and the newest versions. " +
            `${formatCount(more)} more ${more === 1 ? "miss is" : "misses are"} in the sums.`
          : "",
      head: [
        "time (UTC)",
        "upstream's request id",
        "tool and version",
        "model",
        ...(hasLabels ? ["label"] : []),
        "what changed first",
        "#tokens",
        "#USD",
      ],
      rows: events.map((event) => listEvent(event, hasLabels)),
    },
    {
      title: "By cause",
      note: sayLeft(left.causes, "missed tokens"),
      head: ["cause", "#requests", "#tokens missed", "#that cost"],
      rows: causes.map(({ changed, misses, tokens, usd, unpriced_tokens: unpriced }) => [
        changed,
        formatCount(misses),
        formatCount(tokens),
        formatLost(usd, tokens, unpriced),
      ]),
    },
    tableOfSums("By version", versions, left.versions, {
      "tool and version": describeTool,
      since: ({ since }) => formatTime(since),
    }),
    tableOfSums("By model", models, left.models, { model: ({ model }) => model }),
  ];
}

function listEvent(event: EvidenceEvent, hasLabels: boolean): string[] {
  const { time, id, upstream_request_id: upstream, model, label, changed, tokens, usd } = event;
  return [
    formatTime(time),
    upstream ?? `${id} (the gateway's)`,
    describeTool(event),
    model,
    ...(hasLabels ? [label ?? ""] : []),
    changed,
    tokens === null ? "" : formatCount(tokens),
    tokens === null ? "" : usd === null ? NO_PRICE : formatUsd(usd),
  ];
}

function listLimits({
  known,
  expired,
  paid_again: lost,
  window_points: points,
  unreadable,
}: Evidence): string[] {
  const { exact, partial, unpriced, unknown, failed } = known;
  const lines = [
    `${countOf(exact, "request")}: usage exactly as the upstream reported it, priced kind by kind.`,
    partial > 0 && `${countOf(partial, "request")} broke off: the missing part of the usage is estimated.`,
    unpriced > 0 && `${countOf(unpriced, "request")} without a price: tokens count, dollars do not.`,
    failed > 0 && `${countOf(failed, "request")} failed without usage: not counted as turns.`,
    unknown > 0 && `${countOf(unknown, "request")} without usage: in no sum of tokens or dollars.`,
    "Missed tokens come from the reported usage: what the previous request left in the cache (at most this " +
      "request's input), minus what this one read. If earlier messages shrank, new text may count as missed.",
    "After a start of the gateway, a session's first request cannot be compared with an earlier one.",
    "The cause is the first difference between the two prompts. The gateway keeps no text of them.",
    lost.unpriced_tokens > 0 && `${formatCount(lost.unpriced_tokens)} of the missed tokens have no price.`,
    expired.misses > 0 &&
      `Not in the headline: ${countOf(expired.misses, "request")} after the cache's lifetime ` +
        `had passed (${formatCount(expired.tokens)} tokens, ${formatUsd(expired.usd)}).`,
    Object.keys(points).length > 0 &&
      "Points of a window are an estimate: other devices may use the same account.",
    unreadable > 0 && `${countOf(unreadable, "line")} of the ledger could not be read.`,
  ];
  return lines.filter((line) => line !== false);
}

const PROOF =
  "Each request is a ledger line, which has the hash of the line before it. " +
  "With the ledger, anyone can check all amounts, and that no line was changed or removed:";

export function nameFile({ session }: Evidence): string {
  const now = new Date().toISOString().slice(0, 19).replace("T", "-").replaceAll(":", "");
  return `gateway-report-${session === null ? "" : `${session}-`}${now}.html`;
}

const SEAL = "<!-- gateway report ";

/** Adds a checksum, as a comment that HTML and Markdown hide. */
function seal(text: string): string {
  let sum = 0;
  for (let at = 0; at < text.length; at += 1) sum = (Math.imul(sum, 31) + text.charCodeAt(at)) >>> 0;
  return `${text}${SEAL}${sum.toString(16)} -->\n`;
}

export function isUnchanged(file: string): boolean {
  return file === "" || file === seal(file.slice(0, file.lastIndexOf(SEAL)));
}

export function writeMarkdown(report: Evidence): string {
  const table = ({ title, note = "", head, rows }: TextTable): string[] => [
    "",
    `### ${title}`,
    ...(note === "" ? [] : ["", note]),
    "",
    `| ${head.map((name) => name.replace("#", "")).join(" | ")} |`,
    `|${head.map((name) => (name.startsWith("#") ? " ---: " : " --- ")).join("|")}|`,
    ...rows.map((row) => `| ${row.map(escapeMarkdown).join(" | ")} |`),
  ];
  const lines = [
    `## ${writeTitle(report)}`,
    "",
    listFacts(report).map(escapeMarkdown).join(" · "),
    "",
    `In it: ${describeContent(report).join(" Not in it: ")}`,
    "",
    ...listFigures(report).map(([figure, what]) => `- **${figure}** ${what}`),
    ...listTables(report)
      .filter(({ rows }) => rows.length > 0)
      .flatMap(table),
    "",
    "### What is exact, and what is estimated",
    "",
    ...listLimits(report).map((text) => `- ${text}`),
    "",
    "### Proof",
    "",
    `${PROOF} \`gateway ledger verify --anchor ${report.anchor}\` (gateway ${report.gateway}).`,
    "",
  ];
  return seal(lines.join("\n"));
}

function escapeMarkdown(text: string): string {
  return text.replaceAll(/[\\`*_[\]<>|#~]/g, String.raw`\$&`).replaceAll(/\s+/g, " ");
}

function escapeHtml(text: string): string {
  const escapes: Readonly<Record<string, string>> = {
    "&": "&amp;",
    "<": "&lt;",
    ">": "&gt;",
    '"': "&quot;",
  };
  return text.replaceAll(/[&<>"]/g, (sign) => escapes[sign] ?? "");
}

export function writeHtml(report: Evidence): string {
  const title = escapeHtml(writeTitle(report));
  const [inIt, notInIt] = describeContent(report);
  return seal(`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${title}</title>
<style>${STYLE}</style>
</head>
<body>
<header>
<p class="kicker">gateway report</p>
<h1>${title}</h1>
<p class="facts">${listFacts(report)
    .map((fact) => `<span>${escapeHtml(fact)}</span>`)
    .join(" ")}</p>
</header>
<section class="scope"><p><b>In this file</b> ${inIt}</p><p><b>Not in it</b> ${notInIt}</p></section>
<section class="figures">${listFigures(report)
    .map(([figure, what]) => `<p><b>${escapeHtml(figure)}</b> ${escapeHtml(what)}</p>`)
    .join("")}</section>
${writeChart(report)}
${listTables(report).map(writeTable).join("")}
<section><h2>What is exact, and what is estimated</h2>
<ul>${listLimits(report)
    .map((text) => `<li>${escapeHtml(text)}</li>`)
    .join("")}</ul></section>
<section class="proof"><h2>Proof</h2>
<p>${PROOF}</p>
<pre>gateway ledger verify --anchor ${report.anchor}</pre>
<p class="quiet">Made by gateway ${escapeHtml(report.gateway)}.</p></section>
</body>
</html>
`);
}

function writeTable({ title, note = "", head, rows }: TextTable): string {
  if (rows.length === 0) return "";
  const names = head.map((name) => name.replace("#", ""));
  const kinds = head.map((name) => (name.startsWith("#") ? ' class="n"' : ""));
  const cells = (row: readonly string[]): string =>
    row
      .map((text, index) => `<td${kinds[index]} data-name="${names[index]}">${escapeHtml(text)}</td>`)
      .join("");
  return `<section><h2>${title}</h2>${note === "" ? "" : `<p class="quiet">${note}</p>`}
<table><thead><tr>${names.map((name, index) => `<th${kinds[index]}>${name}</th>`).join("")}</tr></thead>
<tbody>${rows.map((row) => `<tr>${cells(row)}</tr>`).join("\n")}</tbody></table></section>
`;
}

const [WIDTH, HEIGHT, LEFT, TOP, FOOT] = [860, 190, 44, 18, 22];
const LAYERS = ["read", "missed", "fresh"] as const;

function writeChart({ turns, versions }: Evidence): string {
  if (turns.length === 0) return "";
  const means = turns.map(({ turns: all, read, missed, written, sent }) =>
    [read, missed, Math.max(0, written + sent - missed)].map((tokens) => tokens / all),
  );
  const base = TOP + HEIGHT;
  const high = roundUp(Math.max(1, ...means.map((layers) => layers.reduce((sum, each) => sum + each, 0))));
  const step = (WIDTH - LEFT) / turns.length;
  const width = Math.min(18, step * 0.8).toFixed(1);
  const y = (tokens: number): number => TOP + HEIGHT * (1 - tokens / high);
  const bars = means.flatMap((layers, index) => {
    const x = (LEFT + index * step).toFixed(1);
    let top = 0;
    return layers.map((tokens, layer) => {
      top += tokens;
      const height = ((HEIGHT * tokens) / high).toFixed(1);
      return (
        `<rect class="${LAYERS[layer]}" x="${x}" ` +
        `y="${y(top).toFixed(1)}" width="${width}" height="${height}"/>`
      );
    });
  });
  const lines = [high / 2, high].map(
    (tokens) => `<path class="grid" d="M${LEFT} ${y(tokens)}H${WIDTH}"/>
<text x="${LEFT - 6}" y="${y(tokens) + 4}" class="end">${formatShort(tokens)}</text>`,
  );
  let right = LEFT;
  const marks = versions.flatMap(({ since, version, tool }, index) => {
    const isFirst = !versions.slice(0, index).some((each) => each.tool === tool);
    const at = turns.findLastIndex(({ time }) => time <= since);
    if (isFirst || version === null || at < 0) return [];
    const x = LEFT + at * step;
    const isRoom = x >= right;
    if (isRoom) right = x + 6 * version.length + 12;
    const side = x > WIDTH * 0.85 ? 'dx="-4" class="end"' : 'dx="4"';
    const name = isRoom
      ? `<text x="${x.toFixed(1)}" y="${TOP - 6}" ${side}>${escapeHtml(version)}</text>`
      : "";
    return [`<path class="mark" d="M${x.toFixed(1)} ${TOP - 14}V${base}"/>${name}`];
  });
  const counts = turns.map((bar) => bar.turns);
  const legend = marks.length === 0 ? "" : " A dashed line is the first request of a new version.";
  const sizes = [...new Set([Math.min(...counts), Math.max(...counts)])].map(formatCount).join(" to ");
  const what = sizes === "1" ? "Each bar is a request" : `Each bar is the mean of ${sizes} requests`;
  return `<section class="chart"><h2>Input of the turns, in tokens</h2>
<p class="legend">
<span class="read">read from the cache</span>
<span class="missed">paid again although the cache had it</span>
<span class="fresh">new, or its lifetime had passed</span>
</p>
<svg viewBox="0 0 ${WIDTH} ${base + FOOT}" role="img" aria-label="Input tokens of the turns">
${lines.join("")}${bars.join("").replaceAll(/<rect[^>]*height="0.0"\/>/g, "")}${marks.join("")}
<path class="axis" d="M${LEFT} ${base}H${WIDTH}"/>
<text x="${LEFT}" y="${base + 16}">${formatTime(turns[0]?.time ?? "")}</text>
<text x="${WIDTH}" y="${base + 16}" class="end">${formatTime(turns.at(-1)?.time ?? "")}</text>
</svg>
<p class="quiet">${what}, in the order of time.${legend}</p>
</section>`;
}

function roundUp(value: number): number {
  const power = 10 ** Math.floor(Math.log10(value));
  return power * ([1, 1.2, 1.6, 2, 3, 4, 5, 6, 8].find((each) => value <= each * power) ?? 10);
}
