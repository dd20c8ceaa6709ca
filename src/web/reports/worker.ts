// The thread that owns the index of a running gateway's ledger, so that no stream waits for SQLite. reports.ts starts it
// and sends it questions.

import { IndexKeeper } from "../../billing/index/keep.ts";
import { DamagedIndex } from "../../billing/index/ledger-index.ts";
import { readRows } from "../../billing/ledger/row.ts";
import { Sums } from "../../billing/ledger/sums/sums.ts";
import { explainRequest, findRequest } from "../../billing/report/explain.ts";
import { listSeenModels } from "../../billing/report/seen-models.ts";
import { getErrorMessage } from "../../lib/errors.ts";
import { escapeUnprintable } from "../../lib/text/printable.ts";
import { createZone } from "../../lib/text/zone.ts";
import { sumOverview } from "./overview.ts";
import type { Answer, Question, Result } from "./question.ts";
import { listSessions, showSession } from "./sessions.ts";

/** So much is read before the next question is looked at: 0.1 s. */
const STEP_BYTES = 16 << 20;

/** What is answered from the index. */
type Asked = Exclude<Question, { readonly kind: "tally" }>;

let keeper: IndexKeeper | null = null;
let ledgerPath = "";
let isReading = false;
/** Questions that are answered when everything is read. */
const waiting: Asked[] = [];

function openKeeper(path: string): IndexKeeper {
  if (keeper !== null && path === ledgerPath) return keeper;
  keeper?.close();
  ledgerPath = path;
  keeper = new IndexKeeper(path, (note) => globalThis.postMessage({ id: null, note } satisfies Answer));
  return keeper;
}

/** In steps, so that an overview comes meanwhile. */
function readOn(): void {
  if (isReading) return;
  isReading = true;
  setTimeout(() => {
    isReading = false;
    const asked = waiting.splice(0);
    try {
      if (keeper?.advance(STEP_BYTES) === false) {
        waiting.unshift(...asked);
        readOn();
      } else for (const question of asked) answer(question);
    } catch (error) {
      for (const { id } of asked) reply(id, { kind: "failed", error: getErrorMessage(error) });
    }
  });
}

function answer(question: Asked): void {
  try {
    reply(question.id, compute(question));
  } catch (error) {
    if (error instanceof DamagedIndex) keeper?.remake();
    reply(question.id, { kind: "failed", error: getErrorMessage(error) });
  }
}

/** Many lines are read at a time, and then for nine times as long none. */
const TALLY_LINES = 500;
const TALLY_PAUSE = 9;

async function tally({ id, ledgerPath: path, timezone }: Question, lines: number): Promise<void> {
  const sums = new Sums(createZone(timezone));
  let [count, began] = [0, performance.now()];
  try {
    for (const row of readRows(path)) {
      if (count === lines) break;
      count += 1;
      if (row !== null) sums.addRow(row);
      if (count % TALLY_LINES > 0) continue;
      await Bun.sleep(TALLY_PAUSE * (performance.now() - began));
      began = performance.now();
    }
    reply(id, { kind: "tally", tallies: sums.tallies });
  } catch (error) {
    reply(id, { kind: "failed", error: getErrorMessage(error) });
  }
}

function compute(question: Asked): Result {
  const { index, read } = openKeeper(question.ledgerPath);
  const clock = { zone: createZone(question.timezone), now: Date.now() };
  switch (question.kind) {
    case "explain": {
      const found = findRequest(index, question.request);
      // A line break in a name would make a line of its own.
      const lines = found === null ? null : explainRequest(found).map(escapeUnprintable);
      return { kind: "explain", lines };
    }
    case "sessions":
      return { kind: "sessions", sessions: listSessions(index, question.query, clock) };
    case "session":
      return { kind: "session", session: showSession(index, question.session, clock) };
    case "follow":
      return { kind: "followed" };
    case "survey": {
      const use = { damaged: index.progress.unreadable, models: listSeenModels(index) };
      return { kind: "survey", use };
    }
    case "overview":
      return { kind: "overview", overview: { ...sumOverview(index, question.query, clock), read } };
  }
}

function reply(id: number, result: Result): void {
  globalThis.postMessage({ id, result } satisfies Answer);
}

globalThis.addEventListener("message", ({ data }: MessageEvent<Question>) => {
  if (data.kind === "tally") {
    void tally(data, data.lines);
    return;
  }
  try {
    const isDone = openKeeper(data.ledgerPath).advance(STEP_BYTES);
    // The page asks again for the rest.
    if (isDone || data.kind === "overview") answer(data);
    else waiting.push(data);
    if (!isDone) readOn();
  } catch (error) {
    reply(data.id, { kind: "failed", error: getErrorMessage(error) });
  }
});
