// Small parts of all views.

import type { ComponentChildren, RefObject } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import type { LoadedData } from "../state/use.ts";
import { formatExact, formatFull, formatMoment, formatUsd } from "./format.ts";

export function Card({
  title,
  note,
  children,
  id,
}: {
  readonly title: string;
  readonly note?: ComponentChildren;
  readonly children: ComponentChildren;
  readonly id?: string;
}) {
  return (
    <section class="card" id={id}>
      <header>
        <h2>{title}</h2>
        {note && <p class="note">{note}</p>}
      </header>
      {children}
    </section>
  );
}

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

export function Fact({
  title,
  text,
  more,
  href,
}: {
  readonly title: string;
  readonly text: ComponentChildren;
  readonly more?: string;
  readonly href?: string;
}) {
  return (
    <div title={more}>
      <dt>{title}</dt>
      <dd>{href === undefined ? text : <a href={href}>{text}</a>}</dd>
    </div>
  );
}

export function Moment({ time }: { readonly time: string }) {
  const ms = Date.parse(time);
  return <time title={formatFull(ms)}>{formatMoment(ms)}</time>;
}

export function Options<T extends string>({
  values,
  name = (value) => value,
}: {
  readonly values: readonly T[];
  readonly name?: (value: T) => string;
}) {
  return values.map((value) => (
    <option key={value} value={value}>
      {name(value)}
    </option>
  ));
}

export function Failure({
  text,
  retry,
  close,
}: {
  readonly text: string;
  readonly retry?: () => void;
  readonly close?: () => void;
}) {
  return (
    <div class="failure" role="alert">
      <p>{text}</p>
      {retry !== undefined && (
        <button type="button" onClick={retry}>
          Try again
        </button>
      )}
      {close !== undefined && (
        <button type="button" onClick={close}>
          Close
        </button>
      )}
    </div>
  );
}

export function Waiting({
  of: { data, error, load },
  text,
}: {
  readonly of: LoadedData<unknown>;
  readonly text: string;
}) {
  if (error !== null) return <Failure text={error} retry={load} />;
  return data === null ? <p class="loading">{text}</p> : null;
}

const COPIED_MS = 2000;
const COPY_KEYS = /Mac|iP/.test(navigator.platform) ? "⌘C" : "Ctrl+C";

export function Copy({ text, label }: { readonly text: string; readonly label: string }) {
  const shown = useRef<HTMLElement>(null);
  const [done, setDone] = useState<string | null>(null);
  useEffect(() => {
    if (done === null) return undefined;
    const timer = setTimeout(() => setDone(null), COPIED_MS);
    return () => clearTimeout(timer);
  }, [done]);
  const copy = async (): Promise<void> => {
    try {
      await navigator.clipboard.writeText(text);
      setDone("Copied");
    } catch {
      // The clipboard is missing without TLS, or needs a permission.
      if (shown.current !== null) getSelection()?.selectAllChildren(shown.current);
      setDone(`Selected: press ${COPY_KEYS}`);
    }
  };
  return (
    <>
      <code ref={shown} tabIndex={0}>
        {text}
      </code>
      <button type="button" class="copy" onClick={() => void copy()} aria-label={done ?? `Copy ${label}`}>
        {done ?? "Copy"}
      </button>
    </>
  );
}

export function Snippet({ text, label }: { readonly text: string; readonly label: string }) {
  return (
    <div class="snippet">
      <Copy text={text} label={label} />
    </div>
  );
}

/** The browser keeps the focus in the dialog.
 *  It stays open if `mayClose` returns false. */
export function Dialog({
  title,
  onClose,
  mayClose = () => true,
  children,
  side,
}: {
  readonly title: string;
  readonly onClose: () => void;
  readonly mayClose?: () => boolean;
  readonly children: ComponentChildren;
  readonly side?: boolean;
}) {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    dialog.current?.showModal();
    // Otherwise the close button has the focus.
    dialog.current?.querySelector<HTMLElement>("input, form select, .snippet button")?.focus();
  }, []);
  // A second Escape closes a dialog even if the page refused the first.
  const close = (): void => {
    if (mayClose()) onClose();
    else dialog.current?.showModal();
  };
  return (
    <dialog ref={dialog} class={side === true ? "side" : ""} aria-label={title} onClose={close}>
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

export function useWidth(): readonly [box: RefObject<HTMLDivElement | null>, width: number] {
  const box = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(0);
  useEffect(() => {
    const { current } = box;
    if (current === null) return undefined;
    const observer = new ResizeObserver(() => setWidth(current.clientWidth));
    observer.observe(current);
    return () => observer.disconnect();
  }, []);
  return [box, width];
}

/** Shows a share from 0 to 1. Without a label, it is decoration. */
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

export function Amount({ usd }: { readonly usd: string }) {
  return <span title={formatExact(usd)}>{formatUsd(usd)}</span>;
}

/** What a plan paid is not a charge, and is shown in brackets. */
export function Charge({ usd, plan }: { readonly usd: string | null; readonly plan?: string | undefined }) {
  if (plan !== undefined) return <span title={`A plan paid ${formatExact(plan)}`}>({formatUsd(plan)})</span>;
  return usd === null ? <>–</> : <Amount usd={usd} />;
}
