import { describe, expect, test } from "bun:test";
import { formatTable } from "../../src/cli/terminal.ts";

const COLUMNS = [{ title: "NAME" }, { title: "SUM", align: "right" as const }, { title: "NOTE" }];

describe("a table", () => {
  test("aligns its columns, also of wide and combined characters, and ends no line with blanks", () => {
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

  test("is cut to the terminal's width where it is widest, whole characters only", () => {
    const rows = [["name", "1", "漢字漢字漢字漢字"]];
    const lines = formatTable(COLUMNS, rows, 23);
    expect(lines[1]).toBe("name    1  漢字漢字漢…");
    for (const line of lines) expect(Bun.stringWidth(line)).toBeLessThanOrEqual(23);
  });

  test("keeps its columns readable on the narrowest terminal", () => {
    expect(formatTable(COLUMNS, [["a-very-long-name", "1", "a-very-long-note"]], 5)[1]).toBe(
      "a-very-…    1  a-very-…",
    );
  });

  test("never cuts a number", () => {
    const lines = formatTable(COLUMNS, [["a-very-long-name", "0.000246875", "a-very-long-note"]], 20);
    expect(lines[1]).toBe("a-very-…  0.000246875  a-very-…");
  });

  test("leaves out what can be spared before it cuts the rest beyond use", () => {
    const columns = [
      { title: "ID", least: 16 },
      { title: "KIND", spare: 2 },
      { title: "WHERE", spare: 1 },
      { title: "$", align: "right" as const },
    ];
    const rows = [["claude-opus-4-8", "messages", "anthropic-main", "0.5"]];
    expect(formatTable(columns, rows, 60)[1]).toBe("claude-opus-4-8  messages  anthropic-main  0.5");
    expect(formatTable(columns, rows, 44)[1]).toBe("claude-opus-4-8  messages  anthropic-m…  0.5");
    expect(formatTable(columns, rows, 34)).toEqual([
      "ID               WHERE           $",
      "claude-opus-4-8  anthropic-m…  0.5",
    ]);
    expect(formatTable(columns, rows, 24)[1]).toBe("claude-opus-4-8  0.5");
    expect(formatTable(columns, rows)[1]).toBe("claude-opus-4-8  messages  anthropic-main  0.5");
  });

  test("lets no cell move the cursor", () => {
    expect(formatTable(COLUMNS, [["a\u001B[2Jb", "1", "x\ny"]])[1]).toBe("a [2Jb    1  x y");
  });
});
