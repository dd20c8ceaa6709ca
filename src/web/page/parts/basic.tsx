// Small parts that all views use.

import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";

export function Card({
  title,
  note,
  children,
  wide,
}: {
  readonly title: string;
  readonly note?: string | undefined;
  readonly children: ComponentChildren;
  readonly wide?: boolean;
}) {
  return (
    <section class={wide === true ? "card wide" : "card"}>
      <header>
        <h2>{title}</h2>
        {note !== undefined && <p class="note">{note}</p>}
      </header>
      {children}
    </section>
  );
}

/** Says what to do when there is nothing to show. */
export function Empty({
  title,
  children,
}: {
  readonly title: string;
  readonly children?: ComponentChildren;
}) {
  return (
    <div class="empty">
      <p class="empty-title">{title}</p>
      {children}
    </div>
  );
}

/** `number`: digits, which are right-aligned. `some`: a column that a narrow screen leaves out. */
type ColumnClass = "number" | "some" | "number some";

/** A table that can be scrolled sideways. Its rows are the children. */
export function Table({
  name,
  columns,
  children,
}: {
  readonly name: string;
  readonly columns: readonly (readonly [title: string, className?: ColumnClass])[];
  readonly children: ComponentChildren;
}) {
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label={name}>
      <table class="rows">
        <thead>
          <tr>
            {columns.map(([title, className]) => (
              <th key={title} scope="col" class={className}>
                {title}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>{children}</tbody>
      </table>
    </div>
  );
}

export function Failure({ text, retry }: { readonly text: string; readonly retry?: () => void }) {
  return (
    <div class="failure" role="alert">
      <p>{text}</p>
      {retry !== undefined && (
        <button type="button" onClick={retry}>
          Try again
        </button>
      )}
    </div>
  );
}

const COPIED_MS = 2000;

export function Copy({ text, label }: { readonly text: string; readonly label: string }) {
  const [copied, setCopied] = useState(false);
  useEffect(() => {
    if (!copied) return undefined;
    const timer = setTimeout(() => setCopied(false), COPIED_MS);
    return () => clearTimeout(timer);
  }, [copied]);
  const copy = (): void => {
    void navigator.clipboard.writeText(text).then(() => setCopied(true));
  };
  return (
    <button type="button" class="copy" onClick={copy} aria-label={copied ? "Copied" : `Copy ${label}`}>
      {copied ? "Copied" : "Copy"}
    </button>
  );
}

/** Code with a button that copies it. */
export function Snippet({ text, label }: { readonly text: string; readonly label: string }) {
  return (
    <div class="snippet">
      <code tabIndex={0}>{text}</code>
      <Copy text={text} label={label} />
    </div>
  );
}

/** The browser's own dialog: it keeps the focus inside, and Escape closes it. */
export function Dialog({
  title,
  onClose,
  children,
  side,
}: {
  readonly title: string;
  readonly onClose: () => void;
  readonly children: ComponentChildren;
  readonly side?: boolean;
}) {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    dialog.current?.showModal();
  }, []);
  return (
    <dialog ref={dialog} class={side === true ? "side" : ""} aria-label={title} onClose={onClose}>
      <header>
        <h2>{title}</h2>
        <button type="button" class="close" aria-label="Close" onClick={() => dialog.current?.close()}>
          ✕
        </button>
      </header>
      {children}
    </dialog>
  );
}

export function Pill({
  tone,
  children,
}: {
  readonly tone: "good" | "warn" | "bad" | "calm";
  readonly children: ComponentChildren;
}) {
  return <span class={`pill ${tone}`}>{children}</span>;
}

/** A share from 0 to 1. Without a label it is decoration. */
export function Bar({
  tone,
  share,
  label,
}: {
  readonly tone: "good" | "warn" | "bad" | "plain";
  readonly share: number;
  readonly label?: string;
}) {
  const value = Math.min(1, Math.max(0, share));
  return (
    <>
      <svg class={`share-bar ${tone}`} aria-hidden="true">
        <rect class="track" width="100%" height="100%" rx="4" />
        <rect class="fill" width={`${Math.max(0.6, value * 100)}%`} height="100%" rx="4" />
      </svg>
      {label !== undefined && <meter class="hidden" min={0} max={1} value={value} aria-label={label} />}
    </>
  );
}
