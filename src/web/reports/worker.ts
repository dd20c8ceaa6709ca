// A thread that reads the ledger for the page, so that no stream of the gateway waits for a report. reports.ts starts it
// and sends it questions.

import { getErrorMessage } from "../../lib/errors.ts";
import { setPriority } from "node:os";
import { explainRequest, findRequest } from "../../billing/report/explain.ts";
import { LedgerCube } from "../../billing/report/cube.ts";
import { escapeUnprintable } from "../../lib/text/printable.ts";
import { createZone } from "../../lib/text/zone.ts";
import type { Answer, Question, WorkerSettings } from "./question.ts";
import { sumOverview } from "./overview.ts";
import { createPause } from "./pause.ts";
import { listSessions, showSession } from "./sessions.ts";

/** How long the first answer may take. The page asks again until everything is read. */
const READ_MS = 250;
const PART_MS = 50;
const NICE = 10;

// On Linux, this thread alone gives way to the thread of the gateway. Elsewhere it would be the whole process.
if (process.platform === "linux") setPriority(NICE);

let cube: LedgerCube | null = null;
let isReading = false;
let settings: WorkerSettings | null = null;
/** The same memory comes with each question. */
let pause: (() => void) | null = null;
/** Questions that are answered when everything is read. */
const waiting: number[] = [];

function openCube(wanted: WorkerSettings, pauses: () => void): LedgerCube {
  const { ledgerPath, timezone } = wanted;
  const isSame = settings?.ledgerPath === ledgerPath && settings.timezone === timezone;
  settings = wanted;
  if (cube !== null && isSame) return cube;
  dropCube();
  cube = new LedgerCube(ledgerPath, createZone(timezone), Date.now, pauses);
  return cube;
}

/** After an error, because a file may be gone that it was reading. The next question begins anew. */
function dropCube(): void {
  cube?.close();
  cube = null;
}

/** In parts, so that the next question does not wait for all of it. */
function readOn(): void {
  if (isReading) return;
  isReading = true;
  setTimeout(() => {
    isReading = false;
    try {
      readPart();
    } catch (error) {
      dropCube();
      for (const id of waiting.splice(0)) reply(id, { kind: "failed", error: getErrorMessage(error) });
    }
  });
}

function readPart(): void {
  if (cube === null) return;
  if (cube.read < 1) cube.advance(PART_MS);
  if (cube.read < 1) {
    readOn();
    return;
  }
  cube.save();
  for (const id of waiting.splice(0)) reply(id, { kind: "updated" });
}

/** Null: it is answered later. */
function answer(question: Question): Answer["result"] | null {
  const { ledgerPath } = question;
  pause ??= createPause(question.streams);
  const clock = { zone: createZone(question.timezone), now: Date.now(), pause };
  // What comes before the first line or cell takes as long as a piece. So does sending the answer.
  pause();
  switch (question.kind) {
    case "explain": {
      const found = findRequest(ledgerPath, question.request, pause);
      // A line break in a name would make a line of its own.
      const lines = found === null ? null : explainRequest(found).map(escapeUnprintable);
      return { kind: "explain", lines };
    }
    case "sessions":
      return { kind: "sessions", sessions: listSessions(ledgerPath, question.query, clock) };
    case "session":
      return { kind: "session", session: showSession(ledgerPath, question.session, clock) };
    case "update":
      openCube(question, pause).advance(PART_MS);
      waiting.push(question.id);
      readOn();
      return null;
    case "overview": {
      const opened = openCube(question, pause);
      opened.advance(READ_MS);
      readOn();
      return { kind: "overview", overview: sumOverview(opened, question.query, clock) };
    }
  }
}

function reply(id: number, result: Answer["result"]): void {
  pause?.();
  globalThis.postMessage({ id, result } satisfies Answer);
}

globalThis.addEventListener("message", ({ data }: MessageEvent<Question>) => {
  try {
    const result = answer(data);
    if (result !== null) reply(data.id, result);
  } catch (error) {
    if (data.kind === "overview" || data.kind === "update") dropCube();
    reply(data.id, { kind: "failed", error: getErrorMessage(error) });
  }
});
