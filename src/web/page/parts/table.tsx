// A table is its columns: each has a title, a class, and what it shows of a row.

import type { ComponentChildren } from "preact";
import { formatCount } from "./format.ts";

/** `name`: somebody else has chosen it, so a long one is cut. `number`: right-aligned. `more`: not on a phone; `some`: not on
 *  a narrow screen; `rare`: only on a wide one. */
type ColumnClass = `${"" | "name" | "number" | "share" | "text"}${"" | " more" | " some" | " rare"}`;

/** What has no value is a dash, and what is undefined is empty. */
export type Column<T> = readonly [title: string, className: ColumnClass, cell: (row: T) => ComponentChildren];

type Title = readonly [title: string, className?: string, ...unknown[]];

function Head({ columns }: { readonly columns: readonly Title[] }) {
  return (
    <thead>
      <tr>
        {columns.map(([title, className], index) => (
          <th key={index} scope="col" class={className} title={title}>
            {title}
          </th>
        ))}
      </tr>
    </thead>
  );
}

/** The first one names the row. */
function Cells<T>({ columns, row }: { readonly columns: readonly Column<T>[]; readonly row: T }) {
  return columns.map(([, className, cell], index) => {
    const found = cell(row);
    const shown = found === null || found === "" ? "–" : found;
    const text = typeof shown === "string" && className.startsWith("name") ? shown : undefined;
    const content = text === undefined ? shown : <span>{text}</span>;
    return index === 0 ? (
      <th key={index} scope="row" class={className} title={text}>
        {content}
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
  /** What a row says beside its cells. */
  readonly describe?: (row: T) => { readonly class?: string; readonly title?: string };
  /** A small one is as wide as its place. Another can be scrolled sideways. */
  readonly small?: boolean;
}

export function Table<T>({ name, columns, rows, keyOf, describe, small = false }: TableProps<T>) {
  const table = (
    <table class={small ? "names" : "rows"} aria-label={small ? name : undefined}>
      <Head columns={columns} />
      <tbody>
        {rows.map((row) => (
          <tr key={keyOf(row)} {...describe?.(row)}>
            <Cells columns={columns} row={row} />
          </tr>
        ))}
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

/** An amount of a row. The keyboard follows the link at its beginning. */
export function Amount({
  text,
  href,
  title,
}: {
  readonly text: string;
  readonly href: string;
  readonly title?: string | undefined;
}) {
  return (
    <a href={href} tabIndex={-1} title={title}>
      {text}
    </a>
  );
}

/** Below a list: how many rows it has, and how to see more. */
export function ShowMore(props: {
  readonly shown: number;
  readonly isMore: boolean;
  readonly mayGrow: boolean;
  readonly grow: () => void;
}) {
  if (!props.isMore) return null;
  return (
    <p class="quiet">
      These are the first {formatCount(props.shown)}.{" "}
      {props.mayGrow ? (
        <button type="button" onClick={props.grow}>
          Show more
        </button>
      ) : (
        "A shorter period or a filter shows others."
      )}
    </p>
  );
}
