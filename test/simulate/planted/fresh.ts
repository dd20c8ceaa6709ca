// Bugs that were chosen with fresh eyes: by somebody who had read the product's source and its docs, and nothing of the
// simulator. The list was complete before the first of them was tried. Eight more of it were in bugs.ts already.

import { type Bug, plant } from "./bug.ts";

export const FRESH: readonly Bug[] = [
  plant(
    "reuse a connection that has bytes left after its response",
    "src/lib/http1/client/upstream-connection.ts",
    "const reusable = clean && this.#staysOpen",
    "const reusable = this.#staysOpen",
  ),
  plant(
    "accept a stream without its last event as complete",
    "src/gateway/bill/ending.ts",
    '  return streamed && end === "open" ? "upstream_cut" : "complete";',
    '  return "complete";',
  ),
  plant(
    "wait for the journal only with sync: always",
    "src/billing/ledger/writer.ts",
    "    this.#schedule();\n    return written;",
    '    this.#schedule();\n    return this.#options.sync === "always" ? written : Promise.resolve();',
  ),
  plant(
    "keep the key of its upgrade for a whole WebSocket",
    "src/gateway/websocket/session.ts",
    "    admit(r, catalog);",
    "    r.admitted = this.#options.call.key;",
  ),
  plant(
    "look at a changed config only once",
    "src/config/file/watch.ts",
    "      candidate = content;\n      schedule();",
    "      candidate = content;",
  ),
  plant(
    "keep a cooldown of a clock that was set back",
    "src/gateway/channels/cooldown.ts",
    "  if (cooldown === null || now < cooldown.begun || cooldown.until - now > MAX_COOLDOWN_MS) return null;",
    "  if (cooldown === null) return null;",
  ),
  plant(
    "write an operator's command later",
    "src/gateway/channels/channels.ts",
    "    this.#store.touch();\n    this.#store.flush();",
    "    this.#store.touch();",
  ),
  plant(
    "give a paused connection to the next request",
    "src/lib/http1/client/upstream-connection.ts",
    "    this.#flow.release();\n    if (reusable)",
    "    if (reusable)",
  ),
  plant(
    "leave a WebSocket paused after its client has read",
    "src/gateway/websocket/session.ts",
    "    drained: () => {\n      this.#upstream?.resume();\n      this.#makeRoom();",
    "    drained: () => {\n      this.#makeRoom();",
  ),
  plant(
    "reserve the price of the first channel",
    "src/gateway/bill/bill.ts",
    "    quotes: candidates.map(",
    "    quotes: candidates.slice(0, 1).map(",
  ),
  plant(
    "forget estimates at a start",
    "src/billing/ledger/sums/sums.ts",
    "    if (row.limit !== null) this.addEstimate(request, subtractUsd(row.limit, charge));\n",
    "",
  ),
  plant(
    "journal only other channels than the first",
    "src/gateway/attempt/failover.ts",
    "const isNamed = isFirst && candidate === r.candidates[0];",
    "const isNamed = candidate === r.candidates[0];",
  ),
  plant(
    "give memory back only after a large request that was served",
    "src/gateway/bill/fail.ts",
    "  r.memory?.free();\n",
    "",
  ),
  plant(
    "never hold the end of a chunk",
    "src/gateway/upstream/redact.ts",
    "    if (holdFrom === clean.length) {",
    "    if (holdFrom <= clean.length) {",
  ),
  plant(
    "give an event to a turn of any stream",
    "src/gateway/websocket/session.ts",
    "    const own = this.#turns.filter((turn) => turn.streamId === streamId);",
    "    const own = this.#turns;",
  ),
  plant(
    "forget lines before they are written",
    "src/billing/ledger/writer.ts",
    "      if (lines.length > 0) this.#store.writeLines(lines, prev, this.#now());\n      this.#chain.clearLines();",
    "      this.#chain.clearLines();\n      if (lines.length > 0) this.#store.writeLines(lines, prev, this.#now());",
  ),
  plant(
    "let a sync vouch for records that were written during it",
    "src/billing/ledger/writer.ts",
    "    const openings = this.#unsynced;\n    this.#unsynced = [];\n    try {\n      await this.#store.sync();",
    "    let openings: Opening[] = [];\n    try {\n      await this.#store.sync();\n      openings = this.#unsynced;\n      this.#unsynced = [];",
  ),
  plant(
    "charge with the multiplier of the newest config",
    "src/gateway/bill/settle.ts",
    "    multiplier: r.group.multiplier,\n  });\n  return assessment.basis",
    "    multiplier: gateway.catalog.groups.get(r.group.name)?.multiplier ?? r.group.multiplier,\n  });\n  return assessment.basis",
  ),
  plant(
    "note as synced what was written during the sync",
    "src/billing/ledger/store.ts",
    "    const { position } = this;\n    await Promise.all([this.#lines, ...journals].map(syncFile));",
    "    await Promise.all([this.#lines, ...journals].map(syncFile));\n    const { position } = this;",
  ),
];
