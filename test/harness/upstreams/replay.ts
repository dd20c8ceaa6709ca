// Serves a recorded body byte for byte, cut where the caller wants.

import type { Answer } from "../model/answers/answer.ts";
import type { FamilyName } from "../model/answers/family.ts";

export interface Recording {
  readonly family: FamilyName;
  readonly bytes: Uint8Array;
  readonly status?: number;
  readonly contentType: string;
  /** The offsets where a new piece starts. */
  readonly cuts?: readonly number[];
}

export function replay({ family, bytes, status = 200, contentType, cuts = [] }: Recording): Answer {
  const ends = [
    ...cuts.filter((cut) => cut > 0 && cut < bytes.length).toSorted((a, b) => a - b),
    bytes.length,
  ];
  const pieces = ends.map((end, index) => bytes.subarray(ends[index - 1] ?? 0, end));
  const streamed = contentType.startsWith("text/event-stream") || cuts.length > 0;
  return {
    family,
    status,
    fields: [["content-type", contentType]],
    pieces,
    framing: streamed ? "chunked" : "length",
  };
}
