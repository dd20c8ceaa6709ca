import type { ComponentChildren, TargetedSubmitEvent } from "preact";
import { useState } from "preact/hooks";
import { describeError } from "../state/request.ts";
import { Dialog, Failure } from "./basic.tsx";

export interface FormClosing<Changed> {
  readonly onDone: (changed: Changed) => void;
  readonly onClose: () => void;
}

export function FormDialog<Changed>({
  title,
  action,
  send,
  children,
  onDone,
  onClose,
}: FormClosing<Changed> & {
  readonly title: string;
  readonly action: string;
  readonly send: (values: FormData) => Promise<Changed>;
  readonly children: ComponentChildren;
}) {
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<string | null>(null);
  const submit = async (event: TargetedSubmitEvent<HTMLFormElement>): Promise<void> => {
    event.preventDefault();
    setBusy(true);
    try {
      onDone(await send(new FormData(event.currentTarget)));
    } catch (failure) {
      setError(describeError(failure));
      setBusy(false);
    }
  };
  return (
    <Dialog title={title} onClose={onClose}>
      <form onSubmit={(event) => void submit(event)}>
        {children}
        {error !== null && <Failure text={error} />}
        <p class="actions">
          <button type="submit" class="main" disabled={busy}>
            {action}
          </button>
          <button type="button" onClick={onClose}>
            Cancel
          </button>
        </p>
      </form>
    </Dialog>
  );
}

export function readText(values: FormData, name: string): string {
  const value = values.get(name);
  return typeof value === "string" ? value.trim() : "";
}
