// The browsers that are signed in, and how to end a sign-in.

import { useState } from "preact/hooks";
import type { SignInRow } from "../../api.ts";
import { Card, Failure } from "../parts/basic.tsx";
import { formatMoment } from "../parts/format.ts";
import { describeError, post } from "../state/request.ts";
import { useData } from "../state/use.ts";

export function SignInsView() {
  const { data, error, load, set } = useData<readonly SignInRow[]>("sign-ins");
  const [failure, setFailure] = useState<string | null>(null);
  const end = async (id: string): Promise<void> => {
    try {
      set(await post<readonly SignInRow[]>("sign-ins/end", { id }));
      setFailure(null);
    } catch (reason) {
      setFailure(describeError(reason));
    }
  };
  return (
    <>
      {(error ?? failure) !== null && <Failure text={error ?? failure ?? ""} retry={load} />}
      <Card title="Sign-ins" note="each lasts for thirty days">
        {data === null && error === null && <p class="loading">Loading …</p>}
        <ul class="facts">
          {data?.map(({ id, since, until, browser, own }) => (
            <li class="fact" key={id}>
              <span>
                <b>{browser === "" ? "A browser" : browser}</b>
                {own && " (this one)"}{" "}
                <span class="quiet">
                  since {formatMoment(Date.parse(since))}, until {formatMoment(Date.parse(until))}
                </span>
              </span>
              {!own && (
                <button type="button" onClick={() => void end(id)}>
                  Sign out
                  <span class="hidden"> the browser of {formatMoment(Date.parse(since))}</span>
                </button>
              )}
            </li>
          ))}
        </ul>
        <p class="quiet">
          <code>gateway open</code> signs in another browser of this machine.
        </p>
      </Card>
    </>
  );
}
