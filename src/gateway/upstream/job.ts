// The client's request in the upstream's dialect, ready for any channel of the match.

import type { Platform } from "../../config/schema.ts";
import type { Dialect } from "../../dialects/dialect.ts";
import { type Bridge, findCrossing } from "./crossing.ts";
import type { ClientCall } from "../intake/call.ts";
import type { ClientIdentity } from "../../billing/ledger/line.ts";
import type { RequestBody } from "../intake/body.ts";

export interface Job {
  readonly call: ClientCall;
  readonly client: ClientIdentity;
  /** Its bytes are released when an upstream has responded. */
  body: RequestBody;
  /** The body as the client wrote it, in its own dialect. Released with `body`. */
  prompt: Uint8Array | null;
  /** The dialect of the upstream request. It differs from the client's if there is a bridge. */
  readonly dialect: Dialect;
  /** The upstream path. If it names the model, the position is that in the call's target. */
  readonly path: string;
  /** Converts between the client's dialect and the upstream's; null if they are the same. */
  readonly bridge: Bridge | null;
  /** What works for it at the upstream, the request or the response to it. delivery/client-left.ts cancels it. */
  running: { cancel(): void };
}

const NOTHING = { cancel: () => {} };

/** The job is the same for all channels of a group: they are of one platform. */
export function createJob(
  call: ClientCall,
  client: ClientIdentity,
  request: RequestBody,
  platform: Platform,
): Job {
  const { dialect } = call.target.endpoint;
  const crossing = findCrossing(dialect.name, platform);
  return crossing === null || request.plain === null
    ? {
        call,
        client,
        body: request,
        prompt: request.plain,
        dialect,
        path: call.target.path,
        bridge: null,
        running: NOTHING,
      }
    : {
        call,
        client,
        prompt: request.plain,
        dialect: crossing.dialect,
        path: crossing.path,
        running: NOTHING,
        ...crossing.cross(call, request, request.plain),
      };
}

/** Releases the memory of the body, which can be many megabytes. Once an upstream has responded, it is not sent again. */
export function releaseBody(job: Job): void {
  job.body = { ...job.body, bytes: null, plain: null };
  job.prompt = null;
}
