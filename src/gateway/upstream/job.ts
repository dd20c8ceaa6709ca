// What is to be done, whichever channel does it: the client's call and request, in the upstream's dialect.

import type { Dialect } from "../../dialects/dialect.ts";
import { type Bridge, CROSSINGS } from "./crossing.ts";
import type { ClientCall } from "../intake/call.ts";
import type { RequestBody } from "../intake/body.ts";

export interface Job {
  readonly call: ClientCall;
  /** Its body is let go once an upstream has answered. */
  body: RequestBody;
  /** The dialect that the upstream is spoken to in: the client's own, but for a bridge. */
  readonly dialect: Dialect;
  /** The path to ask for; the model, where the path names it, stands as in the call's target. */
  readonly path: string;
  /** Converts between the client's dialect and the upstream's; null where they are the same. */
  readonly bridge: Bridge | null;
  /** Leaves the upstream. Each stage sets its own; when it is called is leaving.ts's. */
  cancel: () => void;
}

export function createJob(call: ClientCall, asked: RequestBody): Job {
  const { dialect } = call.target.endpoint;
  const crossing = CROSSINGS[dialect.name];
  return crossing === undefined || asked.plain === null
    ? { call, body: asked, dialect, path: call.target.path, bridge: null, cancel: () => {} }
    : {
        call,
        dialect: crossing.dialect,
        path: crossing.path,
        cancel: () => {},
        ...crossing.cross(call, asked, asked.plain),
      };
}

/** An upstream has answered: nothing will be sent again, and a body of many megabytes need not outlive that. */
export function releaseBody(job: Job): void {
  job.body = { ...job.body, bytes: null, plain: null };
}
