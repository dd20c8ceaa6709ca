// Shows what a person would see on a terminal that has got these bytes. It knows the escape
// sequences that our program uses: any other one fails the test.

interface Page {
  lines: string[][];
  row: number;
  column: number;
  /** Whether the last column is full, so that the next character wraps. */
  isFull: boolean;
}

export interface Screen {
  write(text: string): void;
  resize(columns: number, rows: number): void;
  /** Returns the visible rows, without trailing blanks. */
  rows(): string[];
  /** Returns the visible rows, and before them those that have scrolled off the top. */
  history(): string[];
  readonly cursor: { readonly row: number; readonly column: number; readonly isShown: boolean };
  /** Whether the alternate screen is active, as in an editor. */
  readonly isOther: boolean;
  readonly hasColour: boolean;
}

// oxlint-disable-next-line no-control-regex -- escapes are what this is about
const TOKEN = /\u001B\[(?<codes>[?\d;]*)(?<verb>[A-Za-z])|[\r\n\u0007]|(?<text>[^\u001B\r\n\u0007]+)/gu;

export function createScreen(columns: number, rows: number): Screen {
  const size = { columns, rows };
  const main = openPage(rows);
  const scrolled: string[][] = [];
  const state = { page: main, isShown: true, wraps: true, hasColour: false };

  const feed = (): void => {
    const { page } = state;
    if (page.row < size.rows - 1) page.row += 1;
    else {
      const [top] = page.lines.splice(0, 1);
      page.lines.push([]);
      if (page === main && top !== undefined) scrolled.push(top);
    }
  };
  const put = (text: string): void => {
    for (const { segment } of new Intl.Segmenter().segment(text)) {
      const { page } = state;
      if (page.isFull && state.wraps) {
        page.column = 0;
        feed();
      }
      const width = Bun.stringWidth(segment);
      const line = page.lines[page.row]!;
      while (line.length < page.column) line.push(" ");
      line.splice(page.column, width, segment, ...Array.from({ length: width - 1 }, () => ""));
      page.column += width;
      page.isFull = page.column >= size.columns;
      if (page.isFull) page.column = size.columns - 1;
    }
  };
  const move = (row: number, column: number): void => {
    const { page } = state;
    page.row = Math.max(0, Math.min(size.rows - 1, row));
    page.column = Math.max(0, Math.min(size.columns - 1, column));
    page.isFull = false;
  };
  const erase = (fromColumn: number): void => {
    state.page.lines[state.page.row]!.splice(fromColumn);
  };
  const setMode = (code: string, on: boolean): void => {
    if (code === "?25") state.isShown = on;
    else if (code === "?7") state.wraps = on;
    else if (code === "?1049") state.page = on ? openPage(size.rows) : main;
    else if (code !== "?2026") throw new Error(`unknown mode ${code}`);
  };
  const clear = (lines: readonly string[][]): void => {
    for (const line of lines) line.length = 0;
  };
  const verbs: Readonly<Record<string, (first: number, second: number) => void>> = {
    A: (count) => move(state.page.row - (count || 1), state.page.column),
    H: (row, column) => move((row || 1) - 1, (column || 1) - 1),
    K: () => erase(state.page.column),
    J: (which) => {
      if (which === 2) return clear(state.page.lines);
      erase(state.page.column);
      clear(state.page.lines.slice(state.page.row + 1));
    },
    m: () => (state.hasColour = true),
  };
  const obey = (verb: string, codes: string): void => {
    if (verb === "h" || verb === "l") return setMode(codes, verb === "h");
    const [first = 0, second = 0] = codes.split(";").map(Number);
    const act = verbs[verb];
    if (act === undefined) throw new Error(`unknown escape ${codes}${verb}`);
    act(first, second);
  };

  return {
    write: (text) => {
      let end = 0;
      for (const token of text.matchAll(TOKEN)) {
        if (token.index !== end)
          throw new Error(`unreadable: ${JSON.stringify(text.slice(end, token.index))}`);
        end = token.index + token[0].length;
        const { verb, codes, text: plain } = token.groups!;
        if (plain !== undefined) put(plain);
        else if (verb !== undefined) obey(verb, codes!);
        else if (token[0] === "\r") move(state.page.row, 0);
        else if (token[0] === "\n") feed();
      }
    },
    resize: (newColumns, newRows) => {
      size.columns = newColumns;
      size.rows = newRows;
      const { page } = state;
      while (page.lines.length > newRows && page.row < page.lines.length - 1) page.lines.pop();
      while (page.lines.length > newRows) {
        if (page === main) scrolled.push(page.lines[0]!);
        page.lines.shift();
        page.row -= 1;
      }
      while (page.lines.length < newRows) page.lines.push([]);
      for (const line of page.lines) line.splice(newColumns);
      move(page.row, page.column);
    },
    rows: () => state.page.lines.map(draw),
    history: () => [...scrolled, ...state.page.lines].map(draw),
    get cursor() {
      return { row: state.page.row, column: state.page.column, isShown: state.isShown };
    },
    get isOther() {
      return state.page !== main;
    },
    get hasColour() {
      return state.hasColour;
    },
  };
}

function openPage(rows: number): Page {
  return { lines: Array.from({ length: rows }, () => []), row: 0, column: 0, isFull: false };
}

function draw(line: readonly string[]): string {
  return line.join("").trimEnd();
}
