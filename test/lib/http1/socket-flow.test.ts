import { describe, expect, test } from "bun:test";
import { SocketFlow } from "../../../src/lib/http1/socket-flow.ts";
import { nextTurn } from "../../../src/lib/time/next-turn.ts";

const FULL = 512 * 1024;

/** The calls, and whether the socket is read after them. */
function open() {
  const calls: string[] = [];
  const flow = new SocketFlow({
    pause: () => void calls.push("pause"),
    resume: () => void calls.push("resume"),
  });
  return { flow, calls };
}

describe("a socket that delivers a full read", () => {
  test("is read again after a turn of the event loop", async () => {
    const { flow, calls } = open();
    flow.noteRead(FULL);
    expect(calls).toEqual(["pause"]);
    await nextTurn();
    expect(calls).toEqual(["pause", "resume"]);
  });

  test("stays paused while its reader is behind, whichever came first", async () => {
    for (const isHeldFirst of [true, false]) {
      const { flow, calls } = open();
      if (isHeldFirst) flow.hold();
      flow.noteRead(FULL);
      flow.hold();
      await nextTurn();
      expect(calls).toEqual(["pause"]);
      flow.release();
      expect(calls).toEqual(["pause", "resume"]);
    }
  });

  test("is not read earlier because its reader has caught up", async () => {
    const { flow, calls } = open();
    flow.hold();
    flow.noteRead(FULL);
    flow.release();
    expect(calls).toEqual(["pause"]);
    await nextTurn();
    expect(calls).toEqual(["pause", "resume"]);
  });
});

test("a socket that delivers less is read on", () => {
  const { flow, calls } = open();
  flow.noteRead(64 * 1024);
  flow.release();
  expect(calls).toEqual([]);
});
