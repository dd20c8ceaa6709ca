// Bugs that the simulator must find. Each one replaces a few texts of the source, in memory.

import { type Bug, plant } from "./bug.ts";
import { FRESH } from "./fresh.ts";

const CONNECTION = "src/lib/http1/client/upstream-connection.ts";
const CLIENT_CONNECTION = "src/lib/http1/server/client-connection.ts";
const SETTLE = "src/gateway/bill/settle.ts";
const WRITER = "src/billing/ledger/writer.ts";
const STORE = "src/billing/ledger/store.ts";
const APPEND = "src/billing/ledger/append-file.ts";
const RECOVERY = "src/billing/ledger/recovery.ts";
const LIMITS = "src/billing/limits/limits.ts";
const RELAY = "src/gateway/deliver/passed-stream.ts";
const BACKGROUND = "src/gateway/upstream/background.ts";
const COOLDOWN = "src/gateway/channels/cooldown.ts";
const SESSION = "src/gateway/websocket/session.ts";
const TURN = "src/gateway/websocket/turn.ts";
const FRAMES = "src/lib/websocket/frames.ts";
const POOL = "src/lib/http1/client/pool.ts";
const ATTEMPT = "src/gateway/attempt/attempt.ts";

/** The fixes of the security review, undone. */
const UNDONE: readonly Bug[] = [
  plant(
    "D3 undone: an unknown cost does not count against limits",
    SETTLE,
    "const limitUsd = estimateForLimits(r, { assessment, basis, charge, reading }, gateway);",
    "const limitUsd = null;",
  ),
  {
    // Before the fix, the file was checked once a second, and not before each write.
    name: "D10 undone: continue to write into a removed ledger",
    changes: [
      {
        file: STORE,
        from: "    if (!this.#lines.isInPlace()) {\n",
        to: "    if (this.#written < 0) {\n",
      },
      {
        file: WRITER,
        from: "      this.#store.requireInPlace();\n      if (records",
        to: "      if (records",
      },
    ],
  },
  plant(
    "D4 undone: a POST is sent again on a new connection",
    CONNECTION,
    "(!this.#answered && isSafe(exchange.method))",
    "!this.#answered",
  ),
  plant(
    "D5 undone: a connection is reused after a 204 with a body",
    CONNECTION,
    "if (bodiless && announcesBody(announced)) this.#strayBodyPossible = true;",
    "",
  ),
];

/** Common mistakes. */
const NAMED: readonly Bug[] = [
  {
    name: "settle twice",
    changes: [
      {
        file: SETTLE,
        from: "  if (r.settled) return;\n  closeBill",
        to: "  closeBill",
      },
      { file: SETTLE, from: "  if (r.settled) return;\n  const outcome", to: "  const outcome" },
    ],
  },
  plant("drop the journal's sync", STORE, 'this.#options.sync === "always" ? [this.#journal] : []', "[]"),
  plant("drop the lines' sync", STORE, "[this.#lines, ...journals]", "[...journals]"),
  plant("let lines wait a second for their sync", WRITER, "const SYNC_MS = 100;", "const SYNC_MS = 1000;"),
  plant(
    "leak a reservation of money",
    LIMITS,
    "        flight.reserved = subtractUsd(flight.reserved, reserved);\n",
    "",
  ),
  plant("leak a place among concurrent requests", LIMITS, "        flight.running -= 1;\n", ""),
  {
    name: "deliver to the wrong exchange: an idle connection is given to two requests",
    changes: [
      {
        file: POOL,
        from: "const connection = this.#idle.pop();",
        to: "const connection = this.#idle.at(-1);",
      },
      {
        file: POOL,
        from: "    this.#idle.push(connection);\n",
        to: "    if (!this.#idle.includes(connection)) this.#idle.push(connection);\n",
      },
    ],
  },
  plant(
    "forget to release a client that left",
    "src/gateway/deliver/client-left.ts",
    "const cancel = (): void => r.upstream.cancel();",
    "const cancel = (): void => {};",
  ),
  plant("accept a torn line", RECOVERY, "    if (end < size) cut(path, fd, end);\n", ""),
];

const OTHERS: readonly Bug[] = [
  // This was a bug until the simulator found it.
  plant(
    "set no time limit after bytes that only frame a body",
    CONNECTION,
    "    else if (!exchange.paused) this.#deadline",
    "    else if (!exchange.paused && piece !== null) this.#deadline",
  ),
  plant(
    "write a line twice",
    WRITER,
    "    this.#chain.addLine(draft);\n",
    "    this.#chain.addLine(draft);\n    this.#chain.addLine(draft);\n",
  ),
  plant(
    "treat a cut answer as complete",
    CONNECTION,
    'this.#fail("cut", "the upstream closed the connection during its response", error);',
    "this.#exchange = null;\n      exchange.finish();",
  ),
  plant(
    "end a broken stream without an error",
    RELAY,
    "      else this.#break(this.#writeError(explainBreak(r, fault)));",
    '      else this.#break("");',
  ),
  plant(
    "quote the credential in an upstream's error",
    "src/gateway/upstream/redact.ts",
    "  if (found.length === 0) return bytes;\n  const parts",
    "  if (found.length < 1e9) return bytes;\n  const parts",
  ),
  plant(
    "forget requests in flight at the start",
    WRITER,
    "for (const [id, request] of unfinished)",
    "for (const [id, request] of new Map(unfinished.size > 1e9 ? unfinished : []))",
  ),
  plant(
    "write an interrupted line for a request that has a line",
    RECOVERY,
    '    if (typeof id === "string") open.delete(id);\n',
    '    if (id === null) open.delete("");\n',
  ),
  plant(
    "never resume after a slow reader has read",
    CLIENT_CONNECTION,
    '    this.#reportSent();\n    if (this.#phase === "ending")',
    '    if (this.#phase === "ending")',
  ),
  plant(
    "set no time limit inside an answer",
    CONNECTION,
    "if (this.#exchange !== null) this.#deadline.arm(this.#exchange.deadlines.idleMs);",
    "",
  ),
  plant(
    "set no time limit before an answer",
    CONNECTION,
    "    this.#sendBody(body);\n    this.#deadline.arm(exchange.deadlines.firstByteMs);",
    "    this.#sendBody(body);",
  ),
  plant(
    "never end a cooldown",
    COOLDOWN,
    "  return now < cooldown.until || now < cooldown.trialUntil ? cooldown : null;",
    "  return { ...cooldown, untilIsGiven: true };",
  ),
  plant(
    "accept one request too many in a minute",
    LIMITS,
    "if (recent.length < limit) return;",
    "if (recent.length <= limit) return;",
  ),
  plant(
    "accept one concurrent request too many",
    LIMITS,
    "flight.running < limit) return;",
    "flight.running <= limit) return;",
  ),
  plant(
    "round a charge down",
    "src/billing/charge.ts",
    "formatDecimal(roundDecimal(multiplyDecimals(official, readCached(multiplier)), CHARGE_PLACES))",
    'formatDecimal(multiplyDecimals(official, readCached(multiplier))).replace(/(\\.\\d{12})\\d+$/, "$1")',
  ),
  plant(
    "count cached tokens twice",
    "src/dialects/meters/openai.ts",
    'const read = counts.readDetail(inside, "cached_tokens");',
    'const read = 2 * counts.readDetail(inside, "cached_tokens");',
  ),
  plant("lock nothing", "src/lib/files/file-lock.ts", '    database.run("BEGIN IMMEDIATE");\n', ""),
  plant(
    "lose a pipelined request",
    CLIENT_CONNECTION,
    "    if (rest < bytes.length) this.#waiting.add(bytes.subarray(rest));\n    const exchange",
    "    const exchange",
  ),
  plant(
    "mix chunks that arrive together",
    "src/lib/http1/framing.ts",
    "      else if (end !== at) input.copyWithin(end, at, at + take);\n",
    "",
  ),
  plant(
    "keep unsent bytes in a buffer that is overwritten",
    "src/lib/http1/packets.ts",
    "return packet === scratch ? Buffer.from(packet.subarray(taken, length)) : packet.subarray(taken, length);",
    "return packet.subarray(taken, length);",
  ),
  plant("forget an armed time limit", "src/lib/time/deadline.ts", "      last.#index = this.#index;\n", ""),
  plant(
    "begin a new chain after a rotation",
    RECOVERY,
    "missing ?? hashLast(files),",
    "missing ?? hashLast([path]),",
  ),
  plant(
    "go on from what is there when lines are missing",
    RECOVERY,
    "missing ?? hashLast(files),",
    "hashLast(files),",
  ),
  plant(
    "go on from a missing line twice",
    RECOVERY,
    "locate(files, position) !== null || isFollowed(files, position);",
    "locate(files, position) !== null;",
  ),
  plant("record no failed attempt", ATTEMPT, "    this.#note({ error: fault.kind });\n", ""),
  plant("leave half a record after a failed write", APPEND, "      this.#torn = true;\n", ""),
  plant(
    "never try a full disk again",
    WRITER,
    "    this.#retryTimer ??= setTimeout(() => {",
    '    if (problem === "") this.#retryTimer ??= setTimeout(() => {',
  ),
  plant(
    "write no line for a request that was reset without an answer",
    SETTLE,
    "r.open && r.attempts.some(mayHaveArrived)",
    "bill.open && bill.attempts.some(({ status }) => status !== undefined)",
  ),
  plant(
    "stop in the middle of an answer to a slow reader",
    CLIENT_CONNECTION,
    "    if (this.#outbox.size === 0) this.#afterReply();\n    else this.#deadline.arm(this.#server.stallMs);",
    "    this.#outbox.clear();\n    this.#afterReply();",
  ),
];

/** Bugs in what runs beside requests. Each proves that the simulator exercises that part. */
const OPERATED: readonly Bug[] = [
  plant("charge a background response at every fetch", SETTLE, "  background.forget(id);\n", ""),
  plant("forget what goes on in the background", BACKGROUND, "    this.#terms.set(id, terms);\n", ""),
  plant(
    "use a channel that a command has disabled",
    COOLDOWN,
    '  if (memory.disabled) return "closed";\n',
    "",
  ),
  plant(
    "ignore a successful probe",
    "src/gateway/channels/channels.ts",
    "if (memory.cooldown?.untilIsGiven !== true) endCooldowns(memory);",
    "",
  ),
  plant(
    "correct the first amounts instead of the current ones",
    "src/billing/report/reprice.ts",
    "corrected.get(line.id) ?? line",
    "line",
  ),
  plant(
    "keep a line that a power cut tore",
    RECOVERY,
    "    if (zero !== -1) return",
    "    if (zero < -1) return",
  ),
  plant(
    "start the next file before the old one is on the disk",
    STORE,
    "    this.#lines.syncNow();\n    renameSync(path, rotated);",
    "    renameSync(path, rotated);",
  ),
  plant(
    "give up the last sync when the disk fails",
    WRITER,
    "    await this.#syncLast();",
    '    if (this.#options.sync !== "never") await this.#store.sync();',
  ),
];

/** In WebSockets. */
const SOCKETS: readonly Bug[] = [
  // As it was until the simulator found it.
  plant("watch no silence on a WebSocket", SESSION, "    this.#watchSilence(event.streamId);\n", ""),
  plant(
    "give an event to a response of another stream",
    SESSION,
    "this.#turns.filter((turn) => turn.streamId === streamId);",
    "this.#turns.filter((turn) => turn.streamId === streamId || streamId !== null);",
  ),
  plant(
    "keep a response that has ended on its stream",
    SESSION,
    "    this.#turns = this.#turns.filter((other) => other !== turn);\n    this.#watchSilence",
    "    this.#watchSilence",
  ),
  {
    name: "settle a response on a WebSocket twice",
    changes: [
      {
        file: TURN,
        from: "  break(how: Break): void {\n    if (this.#ended) return;\n",
        to: "  break(how: Break): void {\n",
      },
      {
        file: SESSION,
        from: "    this.#turns = this.#turns.filter((other) => other !== turn);\n    this.#watchSilence",
        to: "    this.#watchSilence",
      },
      {
        file: SETTLE,
        from: "  if (r.settled) return;\n  closeBill",
        to: "  closeBill",
      },
    ],
  },
  {
    name: "forget to release the upstream's WebSocket",
    changes: [
      { file: SESSION, from: '    upstream?.close({ code, reason: "" });\n', to: "" },
      {
        file: SESSION,
        from: '    this.#upstream?.close({ code: CLOSE_CODES.goingAway, reason: "" });\n    // Its responses',
        to: "    // Its responses",
      },
    ],
  },
  plant(
    "count a WebSocket that has closed",
    "src/gateway/websocket/accept.ts",
    "      sockets.open -= 1;\n",
    "",
  ),
  plant(
    "leave a client's WebSocket open when the upstream's broke",
    SESSION,
    "    if (isUnused) return this.#endIfIdle();",
    "    if (isUnused || code === CLOSE_CODES.lost) return this.#endIfIdle();",
  ),
  plant(
    "pass what an upstream says about its credential on a WebSocket",
    SESSION,
    "? redactErrorBody(message.bytes, channel)",
    "? message.bytes",
  ),
  plant(
    "pass the fields of an upstream's 101",
    "src/gateway/websocket/connect.ts",
    "redactFields(responseFields(reply.fields), channel, status).filter(isForClient)",
    "reply.fields.filter(isForClient)",
  ),
  plant(
    "accept a WebSocket that was accepted with another key",
    "src/gateway/websocket/connect.ts",
    "    if (fault === null) {\n",
    '    if (fault !== "") {\n',
  ),
  plant(
    "leak the reservation of a response whose client left before it began",
    SESSION,
    "      settleFailure(r, error, gateway);\n",
    "",
  ),
  plant(
    "unmask each piece of a frame from the mask's beginning",
    FRAMES,
    "      this.#maskOffset = (this.#maskOffset + piece.length) & 3;\n",
    "",
  ),
  plant("take a fragment for a message", FRAMES, "    if (!this.#final) return;\n", ""),
];

/** In what keeps connections ready, and in limits of sessions. */
const READY: readonly Bug[] = [
  plant(
    "use an idle connection without a look at it",
    CONNECTION,
    "return Date.now() <= this.#idleUntil + TIMER_TOLERANCE_MS && !hasUnreadBytesOrEnd(this.#socket);",
    "return Date.now() <= this.#idleUntil + TIMER_TOLERANCE_MS;",
  ),
  plant(
    "forget a dial that a request has left to another one",
    POOL,
    "      this.#waiting.delete(exchange);\n      dial.exchange = null;\n",
    "      this.#waiting.delete(exchange);\n",
  ),
  plant(
    "fail a request by a dial that was started for another reason",
    POOL,
    '    if (adopted && kind !== "connect_timeout") this.#dialFor(exchange);\n    else exchange.fail',
    "    if (adopted) return;\n    else exchange.fail",
  ),
  plant(
    "leave a request waiting for its dial when a connection has become idle",
    POOL,
    "    if (exchange === null) {\n      this.#shelve(connection);\n      return;\n    }\n    this.#waiting.delete(exchange);\n    connection.send(exchange);",
    "    this.#waiting.delete(exchange ?? connection as never);\n    this.#shelve(connection);",
  ),
  plant(
    "try only the first address of a name",
    "src/lib/http1/client/race.ts",
    "    if (this.#left.length > 0) this.#step.arm(STEP_MS);\n",
    "",
  ),
  plant(
    "let one request of a session too many in",
    LIMITS,
    "  if (recent.length < limit) return;\n",
    '  if (recent.length < limit || (holder.kind === "session" && recent.length === limit)) return;\n',
  ),
  plant(
    "forget in limits a minute what was in flight at a kill",
    WRITER,
    "[...requests, ...cut]",
    "[...requests]",
  ),
  plant(
    "count nothing that a session has spent",
    LIMITS,
    "  const charged = ledger.spentOf(holder, window);",
    '  if (holder.kind === "session" && ledger.spentOf(holder, window) >= 0n) return;\n  const charged = ledger.spentOf(holder, window);',
  ),
];

/** In limits of a month, and in what is left after a stop. */
const ENDED: readonly Bug[] = [
  plant(
    "let everybody spend any amount in a month",
    LIMITS,
    '  checkSpent(side, { window: "month", limit: limits.usdPerMonth, own, ledger, now });\n',
    "",
  ),
  plant(
    "reserve no money for requests in flight",
    LIMITS,
    "  const committed = addUsd(counted, flight.reserved);",
    "  const committed = counted;",
  ),
  plant(
    "reserve no output",
    "src/billing/limits/reserve.ts",
    "quoteAll(quotes, { input, output }, {});",
    "quoteAll(quotes, { input }, {});",
  ),
  plant(
    "count what was spent before the month began",
    LIMITS,
    "  const charged = ledger.spentOf(holder, window);",
    '  const charged = ledger.spentOf(holder, window === "month" ? "total" : window);',
  ),
  plant(
    "leave the ledger open after a stop",
    "src/gateway/start.ts",
    "    return gateway.ledger.close();\n",
    "    return Promise.resolve();\n",
  ),
  plant("save the channels after a stop", "src/gateway/channels/store.ts", "      isClosed = true;\n", ""),
];

export const BUGS: readonly Bug[] = [
  ...NAMED,
  ...OTHERS,
  ...OPERATED,
  ...SOCKETS,
  ...READY,
  ...ENDED,
  ...FRESH,
  ...UNDONE,
];
