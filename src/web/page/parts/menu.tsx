// A button with a menu.
// The browser closes it on Escape, and on a click elsewhere.

import type { ComponentChildren, TargetedToggleEvent } from "preact";
import { useEffect, useId, useRef, useState } from "preact/hooks";

export function Menu({
  text,
  label,
  children,
}: {
  readonly text: string;
  readonly label?: string;
  readonly children: ComponentChildren;
}) {
  const id = useId();
  const body = useRef<HTMLDivElement>(null);
  const button = useRef<HTMLButtonElement>(null);
  const [isOpen, setOpen] = useState(false);
  const place = ({ currentTarget: { style } }: TargetedToggleEvent<HTMLDivElement>): void => {
    const { left = 0, bottom = 0 } = button.current?.getBoundingClientRect() ?? {};
    style.setProperty("--left", `${left}px`);
    style.top = `${bottom + scrollY}px`;
  };
  useEffect(() => {
    if (isOpen) body.current?.querySelector<HTMLElement>("a, button, select")?.focus();
  }, [isOpen]);
  const close = (): void => body.current?.hidePopover();
  return (
    <>
      <button ref={button} type="button" popoverTarget={id} aria-label={label}>
        {text}
      </button>
      <div
        ref={body}
        id={id}
        class="menu"
        popover="auto"
        onBeforeToggle={place}
        onToggle={({ newState }) => setOpen(newState === "open")}
        onKeyDown={moveFocus}
        onChange={close}
        onClick={({ target }) => target instanceof Element && target.closest("a, button") && close()}
      >
        {isOpen && children}
      </div>
    </>
  );
}

/** The arrow keys choose a line. In a select, they choose a value. */
function moveFocus(event: KeyboardEvent & { readonly currentTarget: HTMLElement }): void {
  const step = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0;
  const items = [...event.currentTarget.querySelectorAll<HTMLElement>("a, button")];
  const at = items.findIndex((item) => item === event.target);
  if (step === 0 || at < 0) return;
  event.preventDefault();
  items.at((at + step) % items.length)?.focus();
}
