// The thread that owns the index of a running gateway's ledger, so that no stream waits for SQLite. reports.ts starts it
// and sends it questions.

import { IndexKeeper } from "../../billing/index/keep.ts";
import { DamagedIndex, type LedgerIndex } from "../../billing/index/ledger-index.ts";
import { readRows } from "../../billing/ledger/row.ts";
import { entryOf } from "../../billing/ledger/sums/entry.ts";
import { Sums, type Tallies } from "../../billing/ledger/sums/sums.ts";
import { describeRequest, findRequest, type RequestDocument } from "../../billing/report/explain.ts";
import { getErrorMessage } from "../../lib/errors.ts";
import { Refusal } from "../../lib/refusal.ts";
import { escapeUnprintable } from "../../lib/text/printable.ts";
import { createZone } from "../../lib/text/zone.ts";
import { sumOverview } from "./overview.ts";
import type { Answer, Question, QuestionName, Questions } from "./question.ts";
import { listCauses, listNames, showRequests } from "./requests.ts";
import type { Clock } from "./scope.ts";
import { listSessions, showSession } from "./sessions.ts";

/** So much is read before the next question is looked at: 0.1 s of CPU. */
const STEP_BYTES = 4 << 20;

type Name = Exclude<QuestionName, "tally">;

/** What is answered from the index. */
const ANSWERS: {
  readonly [Each in Name]: (
    index: LedgerIndex,
    by: Questions[Each]["by"],
    clock: Clock,
  ) => Questions[Each]["answer"];
} = {
  overview: (index, query, clock) => ({ ...sumOverview(index, query, clock), read: keeper?.read ?? 1 }),
  explain: (index, request) => {
    const found = findRequest(index, request);
    return found === null ? null : escapeNames(describeRequest(found));
  },
  sessions: listSessions,
  session: showSession,
  requests: showRequests,
  names: listNames,
  misses: listCauses,
  follow: () => null,
};

/** A name of others may have a line break, or turn the text after it. */
function escapeNames(document: RequestDocument): unknown {
  return JSON.parse(JSON.stringify(document), (_, value: unknown) =>
    typeof value === "string" ? escapeUnprintable(value) : value,
  );
}

let keeper: IndexKeeper | null = null;
let reading: Promise<void> | null = null;

/** In steps, so that an overview comes meanwhile. */
function readOn(index: IndexKeeper): Promise<void> {
  const read = async (): Promise<void> => {
    while (!index.advance(STEP_BYTES)) await Bun.sleep(0);
  };
  return (reading ??= read().finally(() => (reading = null)));
}

async function answer<Each extends Name>({ name, by, ledgerPath, timezone }: Question<Each>) {
  keeper ??= new IndexKeeper(ledgerPath, (note) => post({ note }));
  try {
    // An overview says how much is read, and the page asks again for the rest.
    if (name !== "overview") await readOn(keeper);
    else if (!keeper.advance(STEP_BYTES)) readOn(keeper).catch(() => {});
    return ANSWERS[name](keeper.index, by, { zone: createZone(timezone), now: Date.now() });
  } catch (error) {
    if (error instanceof DamagedIndex) keeper.remake();
    throw error;
  }
}

/** Many lines are read at a time, and then for nine times as long none. */
const TALLY_LINES = 500;
const TALLY_PAUSE = 9;

async function tally({ by: lines, ledgerPath, timezone }: Question<"tally">): Promise<Tallies> {
  const sums = new Sums(createZone(timezone));
  let [count, began] = [0, performance.now()];
  for (const row of readRows(ledgerPath)) {
    if (count === lines) break;
    count += 1;
    if (row !== null) sums.add(entryOf(row));
    if (count % TALLY_LINES > 0) continue;
    await Bun.sleep(TALLY_PAUSE * (performance.now() - began));
    began = performance.now();
  }
  return sums.tallies;
}

function post(message: Answer): void {
  globalThis.postMessage(message);
}

globalThis.addEventListener("message", ({ data }: MessageEvent<Question<Name> | Question<"tally">>) => {
  const { id } = data;
  void (data.name === "tally" ? tally(data) : answer(data)).then(
    (found) => post({ id, answer: found }),
    (error: unknown) =>
      post({ id, error: getErrorMessage(error), ...(error instanceof Refusal && { isRefusal: true }) }),
  );
});
