// Parses the config's text into a tree, and finds each value's position.
// Scalars stay strings.

import {
  type Document,
  type ErrorCode,
  isAlias,
  isMap,
  isNode,
  isScalar,
  isSeq,
  LineCounter,
  parseDocument,
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

export type Source = ReturnType<typeof parseSource>;

/** In a flow map, the `}` of `${NAME}` would end the map. So one other
 *  character stands for each brace, and all positions stay. */
const STAND_INS = new Map(Object.entries({ "\uFDD0": "{", "\uFDD1": "}" }));
const STAND_IN = /[\uFDD0\uFDD1]/g;

export function parseYaml(text: string, lineCounter = new LineCounter()): Document.Parsed {
  const document = parseDocument(text.replaceAll(/\$\{([^{}\n]*)\}/g, "$\uFDD0$1\uFDD1"), {
    schema: "failsafe",
    customTags: ["null"],
    merge: true,
    lineCounter,
    prettyErrors: false,
    logLevel: "error",
  });
  visit(document, {
    Pair(_, { key }) {
      // This name is refused, because zod would drop it silently.
      if (!isScalar(key) || key.value !== "__proto__") return;
      const [start = 0, end = start] = key.range ?? [];
      document.errors.push(new YAMLParseError([start, end], "BAD_PROP_ORDER", ""));
    },
    Scalar(_, scalar) {
      if (typeof scalar.value === "string")
        scalar.value = scalar.value.replaceAll(STAND_IN, (mark) => STAND_INS.get(mark) ?? mark);
    },
  });
  return document;
}

/** Throws if aliases make the tree too large. */
export function readTree(document: Document.Parsed): unknown {
  const tree: unknown = document.toJS({ maxAliasCount: 1000 });
  return tree;
}

export function parseSource(text: string) {
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
  const unreadable = { tree: null as unknown, problems, readable: false, locate };
  if (document.errors.some((error) => error.code !== "DUPLICATE_KEY")) return unreadable;
  try {
    return { ...unreadable, tree: readTree(document), readable: true };
  } catch {
    problems.push({ ...place(0), path: [], message: "an alias refers to nothing, or to far too much" });
    return unreadable;
  }
}

const FAULTS: Partial<Record<ErrorCode, string>> = {
  BAD_PROP_ORDER: "no entry can have the name __proto__",
  DUPLICATE_KEY: "this name occurs twice in the same map",
  TAB_AS_INDENT: "YAML is indented with spaces, not with tabs",
  BAD_INDENT: "the indentation does not fit the lines above",
  MULTIPLE_DOCS: "only one YAML document is allowed in the file",
  BLOCK_AS_IMPLICIT_KEY: 'not valid YAML: a value that contains ": " needs quotes',
  BAD_ALIAS: "not valid YAML: a value that begins with * or & needs quotes",
  BAD_SCALAR_START: "not valid YAML: this value needs quotes",
};

/** The parser's message may repeat a secret. */
function describeFault({ code, message }: YAMLError): string {
  if (code === "BAD_INDENT" && message.startsWith("Flow"))
    return "an earlier { or [ is not closed: its end is missing or not indented enough";
  return FAULTS[code] ?? `not valid YAML here (${code.toLowerCase().replaceAll("_", " ")})`;
}

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
