// A cell with the beginning of a session's id, which leads to the session.

import { hrefOf } from "../state/route.ts";

/** Enough to tell sessions apart. */
const LENGTH = 8;
const INFERRED = /^inferred-/;

export function SessionName({ id }: { readonly id: string | null | undefined }) {
  if (id === null || id === undefined || id === "") return <td class="some">–</td>;
  return (
    <td class="some" title={id}>
      <a href={hrefOf(["sessions", id])}>{id.replace(INFERRED, "").slice(0, LENGTH)}</a>
    </td>
  );
}
