// A font for measurements: on every machine its characters are as wide as those of DejaVu Sans or Verdana, the widest fonts
// that systems use for their own texts. Each character is a
// box.

/** In thousandths of the font's size, from the space to the tilde. */
const WIDTHS = [
  318, 401, 460, 838, 636, 950, 780, 275, 390, 390, 500, 838, 318, 361, 318, 337, 636, 636, 636, 636, 636,
  636, 636, 636, 636, 636, 337, 337, 838, 838, 838, 531, 1000, 684, 686, 698, 770, 632, 575, 775, 752, 295,
  295, 656, 557, 863, 748, 787, 603, 787, 695, 635, 611, 732, 684, 989, 685, 611, 685, 390, 337, 390, 838,
  500, 500, 613, 635, 550, 635, 615, 352, 635, 634, 278, 278, 579, 278, 974, 634, 612, 635, 635, 411, 521,
  392, 634, 592, 818, 592, 592, 525, 636, 337, 636, 838,
];
const FIRST = 32;
/** For every other character. */
const OTHER_WIDTH = 640;
const [ASCENT, DESCENT] = [928, -236];

const u16 = (...values: number[]): Buffer => {
  const bytes = Buffer.alloc(values.length * 2);
  values.forEach((value, index) => bytes.writeUInt16BE(value & 0xffff, index * 2));
  return bytes;
};
const u32 = (...values: number[]): Buffer => {
  const bytes = Buffer.alloc(values.length * 4);
  values.forEach((value, index) => bytes.writeUInt32BE(value >>> 0, index * 4));
  return bytes;
};

/** One contour of four points. */
function drawBox(width: number): Buffer {
  const [left, right] = [60, width - 60];
  const points = [
    [left, 0],
    [left, 700],
    [right, 700],
    [right, 0],
  ] as const;
  const steps = (axis: 0 | 1): number[] =>
    points.map((point, index) => point[axis] - (points[index - 1]?.[axis] ?? 0));
  const head = u16(1, left, 0, right, 700, 3, 0);
  return Buffer.concat([head, Buffer.from([1, 1, 1, 1]), u16(...steps(0), ...steps(1)), Buffer.alloc(2)]);
}

function mapCharacters(): Buffer {
  const last = FIRST + WIDTHS.length - 1;
  // Two segments: the characters, which are the glyphs from 1 on, and the end.
  const segments = u16(last, 0xffff, 0, FIRST, 0xffff, 1 - FIRST, 1, 0, 0);
  const table = Buffer.concat([u16(4, 14 + segments.length, 0, 4, 4, 1, 0), segments]);
  return Buffer.concat([u16(0, 1, 3, 1), u32(12), table]);
}

function makeTables(factor: number): Record<string, Buffer> {
  const widths = [OTHER_WIDTH, ...WIDTHS].map((width) => Math.round(width * factor));
  const glyphs = widths.map(drawBox);
  const count = widths.length;
  const offsets = glyphs.reduce((sums, glyph) => [...sums, (sums.at(-1) ?? 0) + glyph.length], [0]);
  const latin = u16(ASCENT, DESCENT, 0, ASCENT, -DESCENT);
  return {
    "OS/2": Buffer.concat([
      u16(0, 600, 400, 5, 0, 650, 700, 0, 140, 650, 700, 0, 480, 50, 250, 0),
      Buffer.alloc(10),
      u32(1, 0, 0, 0),
      Buffer.from("NONE"),
      u16(0x40, FIRST, FIRST + WIDTHS.length - 1),
      latin,
    ]),
    cmap: mapCharacters(),
    glyf: Buffer.concat(glyphs),
    head: Buffer.concat([
      u32(0x10000, 0x10000, 0, 0x5f0f3cf5),
      u16(0, 1000),
      Buffer.alloc(16),
      u16(0, DESCENT, 1000, ASCENT, 0, 8, 2, 1, 0),
    ]),
    hhea: u16(1, 0, ASCENT, DESCENT, 0, 1000, 0, 0, 1000, 1, 0, 0, 0, 0, 0, 0, 0, count),
    hmtx: u16(...widths.flatMap((width) => [width, 60])),
    loca: u32(...offsets),
    maxp: Buffer.concat([u32(0x10000), u16(count, 4, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0)]),
    name: u16(0, 0, 6),
    post: u32(0x30000, 0, 0, 0, 0, 0, 0, 0),
  };
}

/** Bold characters of such fonts are wider. */
const BOLD = 1.1;

/** A style sheet in which `Wide` names the font, before the given rules. */
export function makeWideFontStyle(rules: string): string {
  const face = (weights: string, factor: number): string =>
    `@font-face { font-family: Wide; font-weight: ${weights}; src: url(${makeFont(factor)}) }`;
  return `${face("100 500", 1)}\n${face("501 900", BOLD)}\n${rules}`;
}

function makeFont(factor: number): string {
  const tables = Object.entries(makeTables(factor));
  let offset = 12 + tables.length * 16;
  const records: Buffer[] = [];
  const bodies: Buffer[] = [];
  for (const [tag, bytes] of tables) {
    const body = Buffer.concat([bytes, Buffer.alloc(-bytes.length & 3)]);
    records.push(Buffer.from(tag), u32(0, offset, bytes.length));
    bodies.push(body);
    offset += body.length;
  }
  const font = Buffer.concat([u32(0x10000), u16(tables.length, 128, 3, 32), ...records, ...bodies]);
  return `data:font/ttf;base64,${font.toString("base64")}`;
}
