// The JSON schemas of the config file's scalars, for editors. An editor sees scalars as YAML reads them: numbers, flags
// and texts. The gateway reads the source text instead, and only scalars.ts decides whether a value is valid.

/** `${NAME}` may be anywhere in a value. */
const REFERENCE = "\\$\\{";

function textLike(pattern: string) {
  return { type: "string", pattern: `${pattern}|${REFERENCE}` } as const;
}

export const SHAPES = {
  text: { type: ["string", "number", "boolean"] },
  name: { type: ["string", "number"], pattern: `^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$|${REFERENCE}` },
  flag: { type: undefined, anyOf: [{ type: "boolean" }, textLike("^(true|false)$")] },
  count: { type: undefined, anyOf: [{ type: "integer", minimum: 0 }, textLike("^\\d+$")] },
  decimal: { type: undefined, anyOf: [{ type: "number", minimum: 0 }, textLike("^\\d+(\\.\\d+)?$")] },
  duration: textLike("^\\d+(\\.\\d+)? ?(ms|s|m|h|d)$"),
  size: {
    type: undefined,
    anyOf: [{ type: "integer", minimum: 1 }, textLike("^\\d+(\\.\\d+)? ?([kKmMgG]([iI]?[bB])|[bB])?$")],
  },
  moment: textLike("^\\d{4}-\\d\\d-\\d\\d(T.+)?$"),
  url: textLike("^https?://"),
} as const;
