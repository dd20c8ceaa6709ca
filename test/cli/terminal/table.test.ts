import { describe, expect, test } from "bun:test";
import * as fc from "fast-check";
import { type Column, createTable as createTyped } from "../../../src/cli/terminal/table.ts";
import { measure } from "../../../src/cli/terminal/text.ts";

type Cells = readonly string[];
type Layout = Omit<Column<Cells>, "read">;

/** Of rows that are lists of cells. */
const createTable = (columns: readonly Layout[]) =>
  createTyped<Cells>(columns.map((column, index) => ({ ...column, read: (row) => row[index] ?? "" })));
const formatTable = (columns: readonly Layout[], rows: readonly Cells[], room = Number.POSITIVE_INFINITY) =>
  createTable(columns).draw(rows, room);

const COLUMNS: readonly Layout[] = [{ title: "NAME" }, { title: "SUM", align: "right" }, { title: "NOTE" }];

describe("a table", () => {
  test("a table aligns its columns, also of wide and combined characters, and ends no line with blanks", () => {
    const rows = [
      ["a", "1", "x"],
      ["漢字", "12.50", ""],
      ["e\u0301👩‍💻", "3", "y"],
    ];
    expect(formatTable(COLUMNS, rows)).toEqual([
      "NAME    SUM  NOTE",
      "a         1  x",
      "漢字  12.50",
      "e\u0301👩‍💻       3  y",
    ]);
  });

  test("a table is cut to the terminal's width where it is widest, whole characters only", () => {
    const rows = [["name", "1", "漢字漢字漢字漢字"]];
    const lines = formatTable(COLUMNS, rows, 23);
    expect(lines[1]).toBe("name    1  漢字漢字漢…");
    for (const line of lines) expect(measure(line)).toBeLessThanOrEqual(23);
  });

  test("a table cuts other text before it cuts the name", () => {
    const rows = [["a-very-long-name", "0.000246875", "a-very-long-note"]];
    expect(formatTable(COLUMNS, rows, 42)[1]).toBe("a-very-long-name  0.000246875  a-very-lon…");
    expect(formatTable(COLUMNS, rows, 38)[1]).toBe("a-very-long-na…  0.000246875  a-very-…");
  });

  test("a table leaves a column of numbers out rather than cut a digit", () => {
    const rows = [["a-very-long-name", "0.000246875", "a-very-long-note"]];
    expect(formatTable(COLUMNS, rows, 22)[1]).toBe("a-very-l…  0.000246875");
    expect(formatTable(COLUMNS, rows, 20)[1]).toBe("a-very-long-name");
    expect(formatTable(COLUMNS, rows, 5)[1]).toBe("a-ve…");
  });

  test("a table leaves spare columns out, the highest number first, before the name is cut", () => {
    const columns: readonly Layout[] = [
      { title: "ID" },
      { title: "KIND", spare: 2 },
      { title: "WHERE", spare: 1 },
      { title: "$", align: "right" },
    ];
    const rows = [["claude-opus-4-8", "messages", "anthropic-main", "0.5"]];
    expect(formatTable(columns, rows, 60)[1]).toBe("claude-opus-4-8  messages  anthropic-main  0.5");
    expect(formatTable(columns, rows, 44)[1]).toBe("claude-opus-4-8  messages  anthropic-m…  0.5");
    expect(formatTable(columns, rows, 34)).toEqual([
      "ID               WHERE           $",
      "claude-opus-4-8  anthropic-m…  0.5",
    ]);
    expect(formatTable(columns, rows, 24)[1]).toBe("claude-opus-4-8  0.5");
    expect(formatTable(columns, rows, 16)[1]).toBe("claude-opu…  0.5");
    expect(formatTable(columns, rows)[1]).toBe("claude-opus-4-8  messages  anthropic-main  0.5");
  });

  test("a table keeps the columns that fit after a wider one has gone", () => {
    const columns: readonly Layout[] = [
      { title: "ID" },
      { title: "STATE", spare: 2 },
      { title: "NOTE", spare: 1, least: 40 },
    ];
    const rows = [["laptop", "active", "a note of forty characters, not to be cut"]];
    expect(formatTable(columns, rows, 30)[1]).toBe("laptop  active");
  });

  test("a table cuts no title while something else can go", () => {
    const columns: readonly Layout[] = [
      { title: "ID" },
      { title: "DESCRIPTION" },
      { title: "NOTE", spare: 1 },
    ];
    const rows = [["a", "a long description", "a long note"]];
    expect(formatTable(columns, rows, 25)).toEqual(["ID  DESCRIPTION  NOTE", "a   a long des…  a long …"]);
    // Without this rule, the note would stay, and the title would be "DESCRIPTI…".
    expect(formatTable(columns, rows, 24)).toEqual(["ID  DESCRIPTION", "a   a long description"]);
    expect(formatTable(columns, rows, 20)).toEqual(["ID  DESCRIPTION", "a   a long descript…"]);
  });

  test("a table keeps a firm column even if a name must be cut for it", () => {
    const columns: readonly Layout[] = [
      { title: "TIME", spare: 1, firm: true },
      { title: "MODEL", name: true, least: 8 },
      { title: "IN", align: "right", spare: 2 },
    ];
    const rows = [["12:00:00", "claude-opus-4-8", "12345"]];
    expect(formatTable(columns, rows, 32)[1]).toBe("12:00:00  claude-opus-4-8  12345");
    expect(formatTable(columns, rows, 31)[1]).toBe("12:00:00  claude-opus-4-8");
    expect(formatTable(columns, rows, 20)[1]).toBe("12:00:00  claude-op…");
    expect(formatTable(columns, rows, 17)[1]).toBe("claude-opus-4-8");
  });

  test("a table lets no cell move the cursor", () => {
    expect(formatTable(COLUMNS, [["a\u001B[2Jb", "1", "x\ny"]])[1]).toBe("a\\u001b[2Jb    1  x\\u000ay");
  });
});

describe("a table whose rows come one by one", () => {
  const columns: readonly Layout[] = [
    { title: "NAME", least: 4, most: 10 },
    { title: "NOTE", spare: 1, least: 4 },
    { title: "SUM", align: "right" },
  ];

  test("a table of a log grows with what it shows", () => {
    const table = createTable(columns);
    const row = (cells: readonly string[], room = 80): string | undefined => table.rows([cells], room)[0];
    expect(row(["a", "x", "1"])).toBe("a     x       1");
    expect(row(["longer-name", "", "12.50"])).toBe("longer-na…        12.50");
    expect(row(["b", "y", "2"])).toBe("b           y         2");
    expect(row(["longer-name", "y", "2"], Number.POSITIVE_INFINITY)).toBe("longer-name  y         2");
  });

  test("a log keeps its columns where a name becomes longer, and cuts the name", () => {
    const table = createTable([
      { title: "ID", spare: 2 },
      { title: "MODEL", name: true, least: 5, most: 20 },
      { title: "OUT", align: "right", spare: 1, firm: true },
    ]);
    const row = (cells: readonly string[], room = 16): string | undefined => table.rows([cells], room)[0];
    expect(row(["id1", "short", "7"])).toBe("id1  short    7");
    expect(row(["id2", "a-model-with-a-name", "8"])).toBe("id2  a-mod…    8");
    // Digits are never cut: a column gives way for them.
    expect(row(["id3", "short", "123456"])).toBe("short     123456");
    // Another width is another choice.
    expect(row(["id4", "a-model-with-a-name", "8"], 40)).toBe("id4  a-model-with-a-name       8");
  });

  test("a table has room from the start for cells of usual width", () => {
    const table = createTable(
      columns.map((column, index) => ({ ...column, usual: ["longer-nam", "a note", "99999"][index] ?? "" })),
    );
    expect(table.head(30)).toBe("NAME        NOTE      SUM");
    expect(table.head(20)).toBe("NAME          SUM");
  });

  test("a table never writes a row wider than the terminal, nor an escape of a name", () => {
    const anyText = fc.string({ unit: "grapheme", maxLength: 40 });
    fc.assert(
      fc.property(
        fc.array(fc.array(anyText, { maxLength: 3 })),
        fc.integer({ min: 2, max: 60 }),
        (rows, room) => {
          const table = createTable(columns);
          for (const row of rows) {
            const [line = ""] = table.rows([row], room);
            expect(measure(line)).toBeLessThanOrEqual(room);
            expect(line).not.toMatch(/\p{Cc}/u);
          }
        },
      ),
    );
  });
});

describe("the columns of a report of months", () => {
  const columns: readonly Layout[] = [
    { title: "MODEL", name: true },
    { title: "REQUESTS", align: "right", spare: 1 },
    { title: "INPUT", align: "right", spare: 4 },
    { title: "CACHE READ", align: "right", spare: 5 },
    { title: "OUTPUT", align: "right", spare: 3 },
    { title: "OFFICIAL $", align: "right", spare: 2 },
    { title: "CHARGED $", align: "right" },
  ];
  const rows = [
    [
      "claude-sonnet-4-5-20250929",
      "3,908",
      "18,948,300",
      "245,491,000",
      "7,611,000",
      "583.463000",
      "567.933000",
    ],
    ["claude-haiku-4-5-20251001", "7", "3", "1", "19", "0.000583", "0.000567"],
  ];

  test.each([
    [60, ["MODEL", "REQUESTS", "OFFICIAL $", "CHARGED $"]],
    [80, ["MODEL", "REQUESTS", "OUTPUT", "OFFICIAL $", "CHARGED $"]],
    [120, ["MODEL", "REQUESTS", "INPUT", "CACHE READ", "OUTPUT", "OFFICIAL $", "CHARGED $"]],
    [200, ["MODEL", "REQUESTS", "INPUT", "CACHE READ", "OUTPUT", "OFFICIAL $", "CHARGED $"]],
  ])("at %i columns are whole, and those that fit", (room, titles) => {
    const [head = "", ...lines] = formatTable(columns, rows, room);
    expect(head.split(/ {2,}/)).toEqual(titles);
    for (const [at, line] of lines.entries()) {
      const shown = titles.map((title) => rows[at]?.[columns.findIndex((column) => column.title === title)]);
      expect(line.split(/ {2,}/)).toEqual(shown.map(String));
    }
    for (const line of [head, ...lines]) expect(measure(line)).toBeLessThanOrEqual(room);
  });
});
