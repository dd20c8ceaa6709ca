// The clients of every target, in a process of their own. It reads one job from each line
// of stdin and answers with one line of JSON on stdout. Requests are bytes made
// in advance, and answers are only counted, so that the times are those of the wire.

import { readSync, writeSync } from "node:fs";
import { Crowd, type Client, type Outcome } from "./crowd.ts";
import type { RequestOptions } from "./requests.ts";
import { closeSocket, sleep, tryConnect } from "./sockets.ts";

export type Job =
  /** Requests one after another on each connection, for a time after the warm-up. */
  | {
      readonly do: "repeat";
      readonly request: RequestOptions;
      readonly connections: number;
      readonly warmMs: number;
      readonly ms: number;
    }
  /** The same with a pause after each answer. */
  | {
      readonly do: "pause";
      readonly request: RequestOptions;
      readonly connections: number;
      readonly pauseMs: number;
      readonly ms: number;
    }
  /** Requests one after another on one connection, with pauses that are long enough to cool the caches. */
  | {
      readonly do: "sparse";
      readonly request: RequestOptions;
      readonly gapMs: number;
      readonly times: number;
    }
  /** Streams that begin one millisecond apart, so that few events are due at once; each is repeated a number of times. */
  | {
      readonly do: "stream";
      readonly request: RequestOptions;
      readonly connections: number;
      readonly times: number;
    }
  /** One request, as soon as the port is open. */
  | { readonly do: "first"; readonly request: RequestOptions };

/** After this time, a hanging stream is given up. */
const MAX_MS = 60_000;

function repeat(job: Extract<Job, { do: "repeat" }>): Outcome {
  const crowd = new Crowd(job.request, job.connections);
  for (let i = 0; i < job.connections; i += 1) crowd.ask(crowd.join());
  runFor(crowd, job.warmMs);
  crowd.tally.clear();
  const seconds = runFor(crowd, job.ms);
  crowd.end();
  return crowd.tally.report(seconds);
}

function runFor(crowd: Crowd, ms: number): number {
  const start = performance.now();
  while (performance.now() - start < ms) crowd.wait(100);
  return (performance.now() - start) / 1000;
}

function pause(job: Extract<Job, { do: "pause" }>): Outcome {
  const crowd = new Crowd(job.request, job.connections);
  const due: { client: Client; at: number }[] = [];
  crowd.done = (client) => due.push({ client, at: performance.now() + job.pauseMs });
  for (let i = 0; i < job.connections; i += 1) {
    crowd.ask(crowd.join());
    crowd.wait(job.pauseMs / job.connections);
  }
  const start = performance.now();
  while (performance.now() - start < job.ms) {
    for (let [next] = due; next !== undefined && next.at <= performance.now(); [next] = due) {
      due.shift();
      crowd.ask(next.client);
    }
    crowd.wait(1);
  }
  crowd.end();
  return crowd.tally.report((performance.now() - start) / 1000);
}

function askSparsely(job: Extract<Job, { do: "sparse" }>): Outcome {
  const crowd = new Crowd(job.request, 1);
  const start = performance.now();
  let client = crowd.join();
  crowd.done = (served) => {
    client = served;
  };
  for (let asked = 1; asked <= job.times; asked += 1) {
    crowd.ask(client);
    while (crowd.tally.requests < asked && performance.now() - start < MAX_MS) crowd.wait(100);
    sleep(job.gapMs);
  }
  crowd.end();
  return crowd.tally.report((performance.now() - start) / 1000);
}

function stream(job: Extract<Job, { do: "stream" }>): Outcome {
  const crowd = new Crowd(job.request, job.connections);
  const start = performance.now();
  crowd.done = (client) => {
    client.streams += 1;
    if (client.streams < job.times) crowd.ask(client);
    else crowd.leave(client);
  };
  for (let i = 1; i <= job.connections; i += 1) {
    crowd.ask(crowd.join());
    while (performance.now() < start + i) crowd.wait(1);
  }
  while (crowd.set.items.size > 0 && performance.now() - start < MAX_MS) crowd.wait(100);
  crowd.tally.errors += crowd.set.items.size;
  crowd.end();
  return crowd.tally.report((performance.now() - start) / 1000);
}

function askFirst(job: Extract<Job, { do: "first" }>): Outcome {
  for (let probe = -1; probe < 0; sleep(1)) {
    probe = tryConnect(job.request.port);
    if (probe >= 0) closeSocket(probe);
  }
  const crowd = new Crowd(job.request, 1);
  crowd.done = (client) => crowd.leave(client);
  crowd.ask(crowd.join());
  while (crowd.set.items.size > 0) crowd.wait(100);
  return crowd.tally.report(0);
}

function run(job: Job): Outcome {
  switch (job.do) {
    case "repeat":
      return repeat(job);
    case "pause":
      return pause(job);
    case "sparse":
      return askSparsely(job);
    case "stream":
      return stream(job);
    case "first":
      return askFirst(job);
  }
}

function writeLine(value: unknown): void {
  writeSync(1, `${JSON.stringify(value)}\n`);
}

function* readJobs(): Generator<Job> {
  const chunk = Buffer.alloc(64 * 1024);
  let text = "";
  for (let size = readSync(0, chunk); size > 0; size = readSync(0, chunk)) {
    text += chunk.toString("utf8", 0, size);
    for (let end = text.indexOf("\n"); end >= 0; end = text.indexOf("\n")) {
      yield JSON.parse(text.slice(0, end));
      text = text.slice(end + 1);
    }
  }
}

for (const job of readJobs()) writeLine(run(job));
