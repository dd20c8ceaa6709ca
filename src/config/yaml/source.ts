// Parses the config file's text into a tree, and finds the position of each value
// in the text. Every scalar stays a string; the schema gives it its meaning.

import {
  Composer,
  type CST,
  type Document,
  type ErrorCode,
  isAlias,
  isMap,
  isNode,
  isScalar,
  isSeq,
  Lexer,
  LineCounter,
  Parser,
  visit,
  type YAMLError,
  YAMLParseError,
} from "yaml";

export type Path = readonly PropertyKey[];

interface Position {
  readonly line: number;
  readonly column: number;
}

export interface Problem extends Position {
  readonly path: Path;
  readonly message: string;
}

export interface Source {
  /** Maps, lists, strings and nulls. */
  readonly tree: unknown;
  readonly problems: readonly Problem[];
  /** False after a syntax error. A repeated key is a problem, but the tree can still be read. */
  readonly readable: boolean;
  /** The position of the value at a path, or of its key; if there is none, of the nearest node around it. */
  locate(path: Path, part?: "key" | "value"): Position;
}

/** These characters stand for others while YAML is parsed. Each replaces one, so that offsets stay what they are. The
 *  braces of `${NAME}`: in `{ secret: ${NAME} }` they would end the map. */
const STAND_INS = new Map(Object.entries({ "\uFDD0": "{", "\uFDD1": "}" }));
const STAND_IN = /[\uFDD0\uFDD1]/g;

export function parseYaml(text: string, lineCounter = new LineCounter()): Document.Parsed {
  const document = compose(text.replaceAll(/\$\{([^{}\n]*)\}/g, "$\uFDD0$1\uFDD1"), lineCounter);
  let aliases = 0;
  visit(document, {
    Alias(_, { range }) {
      aliases += 1;
      if (aliases === MAX_ALIASES + 1) addError(document, range?.[0] ?? 0, "ALIAS_PROPS");
    },
    Map(_, map) {
      const seen = new Set<unknown>();
      for (const { key } of map.items) {
        if (!isScalar(key)) continue;
        // zod leaves this name out of maps without a word, because it is dangerous in plain objects.
        if (key.value === "__proto__") addError(document, key.range?.[0] ?? 0, "BAD_PROP_ORDER");
        if (seen.has(key.value)) addError(document, key.range?.[0] ?? 0, "DUPLICATE_KEY");
        seen.add(key.value);
      }
    },
    Scalar(_, scalar) {
      if (typeof scalar.value === "string")
        scalar.value = scalar.value.replaceAll(STAND_IN, (mark) => STAND_INS.get(mark) ?? mark);
    },
  });
  return document;
}

/** No setting is nested deeper than six levels. The library's work grows with the square of the depth. */
const MAX_DEPTH = 64;

/** The library looks for the target of each one from the start of the file. */
const MAX_ALIASES = 1000;

/** As the library's `parseDocument`, but with a limit of depth. */
function compose(text: string, lineCounter: LineCounter): Document.Parsed {
  lineCounter.addNewLine(0);
  const parser = new Parser(lineCounter.addNewLine);
  const composer = new Composer({
    schema: "failsafe",
    customTags: ["null"],
    merge: true,
    // The library compares each name with all others of its map: the work would grow with the square of their number.
    uniqueKeys: false,
    lineCounter,
    prettyErrors: false,
    logLevel: "error",
  });
  const [document, second] = composer.compose(readTokens(text, parser), true, text.length);
  if (document === undefined) throw new Error("The YAML library found no document");
  if (parser.stack.length > MAX_DEPTH) addError(document, parser.offset, "RESOURCE_EXHAUSTION");
  if (second !== undefined) addError(document, second.range[0], "MULTIPLE_DOCS");
  return document;
}

/** The parser's stack is as high as the text is nested here. Tokens end where that is too much. */
function* readTokens(text: string, parser: Parser): Generator<CST.Token> {
  for (const lexeme of new Lexer().lex(text)) {
    yield* parser.next(lexeme);
    if (parser.stack.length > MAX_DEPTH) return;
  }
  yield* parser.end();
}

function addError(document: Document.Parsed, offset: number, code: ErrorCode): void {
  document.errors.push(new YAMLParseError([offset, offset + 1], code, ""));
}

/** Throws if aliases would make the tree too large. */
export function readTree(document: Document.Parsed): unknown {
  const tree: unknown = document.toJS({ maxAliasCount: 1000 });
  return tree;
}

export function parseSource(text: string): Source {
  const lines = new LineCounter();
  const document = parseYaml(text, lines);
  const place = (offset: number): Position => {
    const { line, col } = lines.linePos(offset);
    return { line: Math.max(line, 1), column: Math.max(col, 1) };
  };
  const problems: Problem[] = document.errors.map((error) => ({
    ...place(error.pos[0]),
    path: [],
    message: describeFault(error),
  }));
  const locate = (path: Path, part: "key" | "value" = "value") => place(findOffset(document, path, part));
  let readable = document.errors.every((error) => error.code === "DUPLICATE_KEY");
  let tree: unknown = null;
  try {
    if (readable) tree = readTree(document);
  } catch {
    readable = false;
    problems.push({
      line: 1,
      column: 1,
      path: [],
      message: "an alias refers to nothing, or to far too much",
    });
  }
  return { tree, problems, readable, locate };
}

const FAULTS: Partial<Record<ErrorCode, string>> = {
  BAD_PROP_ORDER: "no entry can have the name __proto__",
  DUPLICATE_KEY: "this name is there twice in the same map",
  TAB_AS_INDENT: "YAML is indented with spaces, not with tabs",
  BAD_INDENT: "the indentation does not fit the lines above",
  RESOURCE_EXHAUSTION: `nested more than ${MAX_DEPTH} levels deep`,
  ALIAS_PROPS: `more than ${MAX_ALIASES} aliases`,
  MULTIPLE_DOCS: "only one YAML document is allowed in the file",
  BLOCK_AS_IMPLICIT_KEY: 'not valid YAML: a value that contains ": " needs quotes',
  BAD_ALIAS: "not valid YAML: a value that begins with * or & needs quotes",
  BAD_SCALAR_START: "not valid YAML: this value needs quotes",
  BAD_DQ_ESCAPE: "not valid YAML: unknown escape in a double-quoted text",
};

/** In our own words: the parser's message may repeat the text, which may be a secret. */
function describeFault({ code, message }: YAMLError): string {
  if (code === "MISSING_CHAR" && message.startsWith("Missing")) return `not valid YAML: ${message}`;
  if (code === "BAD_INDENT" && message.startsWith("Flow"))
    return describeUnclosed(message.endsWith("]") ? "[]" : "{}");
  return FAULTS[code] ?? `not valid YAML here (${code.toLowerCase().replaceAll("_", " ")})`;
}

function describeUnclosed([open, close]: string): string {
  return `an earlier ${open} is not closed: its ${close} is missing or not indented enough`;
}

/** The offset of what a path names. */
function findOffset(document: Document.Parsed, path: Path, part: "key" | "value"): number {
  let node: unknown = document.contents;
  let offset = startOf(node) ?? 0;
  for (const [depth, step] of path.entries()) {
    const around: unknown = isAlias(node) ? node.resolve(document) : node;
    const found: { key?: unknown; value?: unknown } | undefined = isMap(around)
      ? around.items.find(({ key }) => isScalar(key) && String(key.value) === String(step))
      : { value: isSeq(around) ? around.items[Number(step)] : undefined };
    if (found === undefined) return offset;
    const isKey = depth === path.length - 1 && part === "key";
    offset = (isKey ? startOf(found.key) : undefined) ?? startOf(found.value) ?? startOf(found.key) ?? offset;
    node = found.value;
  }
  return offset;
}

function startOf(node: unknown): number | undefined {
  return isNode(node) ? (node.range?.[0] ?? undefined) : undefined;
}
