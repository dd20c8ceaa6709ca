// A thread that reads the ledger for the page, so that no stream of the gateway waits for a report. reports.ts starts it
// and sends it questions.

import { getErrorMessage } from "../../lib/errors.ts";
import { setPriority } from "node:os";
import { explainRequest, findRequest } from "../../billing/report/explain.ts";
import { LedgerCube } from "../../billing/report/cube.ts";
import { createZone } from "../../lib/text/zone.ts";
import type { Answer, Question, WorkerSettings } from "./question.ts";
import { sumOverview } from "./overview.ts";
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

function openCube({ ledgerPath, timezone }: WorkerSettings): LedgerCube {
  const isSame = settings?.ledgerPath === ledgerPath && settings.timezone === timezone;
  settings = { ledgerPath, timezone };
  if (cube !== null && isSame) return cube;
  cube?.close();
  return new LedgerCube(ledgerPath, createZone(timezone), Date.now);
}

/** In parts, so that the next question does not wait for all of it. */
function readOn(opened: LedgerCube): void {
  if (opened.read === 1 || isReading) return;
  isReading = true;
  setTimeout(() => {
    isReading = false;
    if (opened !== cube) return;
    opened.advance(PART_MS);
    readOn(opened);
  });
}

function answer(question: Question): Answer["result"] {
  const { ledgerPath } = question;
  const clock = { zone: createZone(question.timezone), now: Date.now() };
  switch (question.kind) {
    case "explain": {
      const found = findRequest(ledgerPath, question.request);
      return { kind: "explain", lines: found === null ? null : explainRequest(found) };
    }
    case "sessions":
      return { kind: "sessions", sessions: listSessions(ledgerPath, question.period, clock) };
    case "session":
      return { kind: "session", session: showSession(ledgerPath, question.session, clock) };
    case "overview":
      cube = openCube(question);
      cube.advance(READ_MS);
      readOn(cube);
      return { kind: "overview", overview: sumOverview(cube, question.query, clock) };
  }
}

globalThis.addEventListener("message", ({ data }: MessageEvent<Question>) => {
  try {
    globalThis.postMessage({ id: data.id, result: answer(data) } satisfies Answer);
  } catch (error) {
    const text = getErrorMessage(error);
    globalThis.postMessage({ id: data.id, result: { kind: "failed", error: text } } satisfies Answer);
  }
});
