// A table on the page.

import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { MAX_ROWS, ROWS } from "../../api.ts";
import { go } from "../state/route.ts";
import { formatCount } from "./format.ts";

/** `name`: a text that is cut if it is long. `number`: right-aligned.
 *  A phone hides `more`, a narrow screen hides `some`, and only a wide screen shows `rare`. */
type ColumnClass = `${"" | "name" | "number" | "share" | "text"}${"" | " more" | " some" | " rare"}`;

export type Column<T> = readonly [title: string, className: ColumnClass, cell: (row: T) => ComponentChildren];

function Cells<T>({
  columns,
  row,
  href,
}: {
  readonly columns: readonly Column<T>[];
  readonly row: T;
  readonly href: string | undefined;
}) {
  return columns.map(([, className, cell], index) => {
    const found = cell(row);
    const shown = found === null || found === "" ? "–" : found;
    const text = typeof shown === "string" && className.startsWith("name") ? shown : undefined;
    const content = text === undefined ? shown : <span>{text}</span>;
    return index === 0 ? (
      <th key={index} scope="row" class={className} title={text}>
        {href === undefined ? content : <a href={href}>{content}</a>}
      </th>
    ) : (
      <td key={index} class={className} title={text}>
        {content}
      </td>
    );
  });
}

interface TableProps<T> {
  readonly name: string;
  readonly columns: readonly Column<T>[];
  readonly rows: readonly T[];
  readonly keyOf: (row: T) => string;
  /** Where a click on a row leads.
   *  The keyboard uses the link of the first cell. */
  readonly hrefOf?: (row: T) => string;
  readonly isSum?: (row: T) => boolean;
  /** A small table is as wide as its place. Others scroll sideways. */
  readonly small?: boolean;
}

export function Table<T>({ name, columns, rows, keyOf, hrefOf, isSum, small = false }: TableProps<T>) {
  const table = (
    <table class={small ? "names" : "rows"} aria-label={small ? name : undefined}>
      <thead>
        <tr>
          {columns.map(([title, className], index) => (
            <th key={index} scope="col" class={className} title={title}>
              {title}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {rows.map((row) => {
          const href = hrefOf?.(row);
          return (
            <tr
              key={keyOf(row)}
              class={isSum?.(row) === true ? "sum" : undefined}
              onClick={href === undefined ? undefined : (event) => follow(event, href)}
            >
              <Cells columns={columns} row={row} href={href} />
            </tr>
          );
        })}
      </tbody>
    </table>
  );
  if (small) return table;
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label={name}>
      {table}
    </div>
  );
}

function follow({ target }: MouseEvent, href: string): void {
  const own = target instanceof Element ? target.closest("a, button, details") : null;
  if (own === null && String(getSelection()) === "") go(href);
}

export function useMore(question: string) {
  const [more, setMore] = useState({ question, most: ROWS });
  const most = more.question === question ? more.most : ROWS;
  return { most, grow: () => setMore({ question, most: Math.min(MAX_ROWS, most * 5) }) };
}

export function ShowMore({ most, grow }: ReturnType<typeof useMore>) {
  return (
    <p class="quiet">
      These are the first {formatCount(most)}.{" "}
      {most < MAX_ROWS ? (
        <button type="button" onClick={grow}>
          Show more
        </button>
      ) : (
        "A shorter period or a filter shows other rows."
      )}
    </p>
  );
}
