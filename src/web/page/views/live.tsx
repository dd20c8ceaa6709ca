// What happens now: open streams, and requests as they end.

import { useState } from "preact/hooks";
import type { RequestRecord } from "../../api.ts";
import { Card, Empty, Name, Pill, Table } from "../parts/basic.tsx";
import {
  formatClock,
  formatCount,
  formatFull,
  formatMs,
  formatShort,
  formatRate as formatShare,
  formatSpan,
  formatUsd,
} from "../parts/format.ts";
import type { StreamState } from "../state/live.ts";
import { go, hrefOf, type Route } from "../state/route.ts";
import { useLive, useNow } from "../state/use.ts";
import { RequestPanel } from "./request.tsx";

export function LiveView({ route }: { readonly route: Route }) {
  const { streams, requests, notices, websockets } = useLive();
  const [, id] = route.path;
  return (
    <>
      <h1 class="hidden">Live</h1>
      <div class="column">
        <Card title="Open streams" note={describeTraffic(streams, websockets)}>
          <Streams streams={streams} />
        </Card>
        <Latest requests={requests} />
        {notices.length > 0 && (
          <Card title="Messages">
            <ul class="notices">
              {notices.map(({ time, level, text }) => (
                <li key={`${time} ${text}`}>
                  <time title={formatFull(time)}>{formatClock(time)}</time>
                  <Pill tone={level === "error" ? "bad" : level === "warning" ? "warn" : "calm"}>
                    {level}
                  </Pill>
                  <span class="text">{text}</span>
                </li>
              ))}
            </ul>
          </Card>
        )}
      </div>
      {id !== undefined && (
        <RequestPanel
          id={id}
          request={requests.find((each) => each.id === id) ?? null}
          isOpen={streams.some((each) => each.id === id)}
          onClose={() => go(hrefOf(["live"]), "replace")}
        />
      )}
    </>
  );
}

function describeTraffic(streams: readonly StreamState[], websockets: number): string {
  const rate = `${formatRate(streams)} tokens/s`;
  return websockets === 0 ? rate : `${rate}, ${websockets} open WebSocket${websockets === 1 ? "" : "s"}`;
}

function formatRate(streams: readonly StreamState[]): string {
  return formatCount(streams.reduce((sum, { tokensPerSecond }) => sum + tokensPerSecond, 0));
}

function Streams({ streams }: { readonly streams: readonly StreamState[] }) {
  const now = useNow(1000);
  if (streams.length === 0) return <Empty title="No stream is open now." />;
  return (
    <Table
      name="Open streams"
      columns={[
        ["Since"],
        ["Model"],
        ["Key", "more"],
        ["Channel", "some"],
        ["Running", "number more"],
        ["Tokens", "number more"],
        ["Tokens/s", "number"],
      ]}
    >
      {streams.map(({ id, model, key, channel, since, tokens, tokensPerSecond }) => (
        <tr key={id}>
          <td>
            <span class="dot" aria-hidden="true" />
            <a href={hrefOf(["live", id])}>{formatClock(since)}</a>
          </td>
          <Name text={model} />
          <Name text={key} more="more" />
          <Name text={channel} more="some" />
          <td class="number more">{formatSpan(now - since)}</td>
          <td class="number more">{formatCount(tokens)}</td>
          <td class="number">{formatCount(tokensPerSecond)}</td>
        </tr>
      ))}
    </Table>
  );
}

/** They can be filtered, and held while somebody reads. */
function Latest({ requests }: { readonly requests: readonly RequestRecord[] }) {
  const [words, setWords] = useState("");
  const [held, setHeld] = useState<readonly RequestRecord[] | null>(null);
  const all = held ?? requests;
  const found = filterRequests(all, words);
  const note = found.length === all.length ? "The last to end first" : `${found.length} of ${all.length}`;
  return (
    <Card title="Latest requests" note={note}>
      {requests.length > 0 && (
        <p class="actions">
          <input
            type="search"
            aria-label="Filter the requests"
            placeholder="model, key, tool, status …"
            value={words}
            onInput={(event) => setWords(event.currentTarget.value)}
          />
          <button
            type="button"
            aria-pressed={held !== null}
            onClick={() => setHeld(held === null ? requests : null)}
          >
            {held === null ? "Pause" : `Go on (${countNew(requests, held)} new)`}
          </button>
        </p>
      )}
      {requests.length > 0 && found.length === 0 ? (
        <Empty title="No request fits." />
      ) : (
        <Requests requests={found} />
      )}
    </Card>
  );
}

function countNew(requests: readonly RequestRecord[], held: readonly RequestRecord[]): number {
  const known = requests.findIndex(({ id }) => id === held[0]?.id);
  return known < 0 ? requests.length : known;
}

/** Each word has to be in one of the columns. */
function filterRequests(requests: readonly RequestRecord[], text: string): readonly RequestRecord[] {
  const words = text
    .toLowerCase()
    .split(/\s+/)
    .filter((word) => word !== "");
  if (words.length === 0) return requests;
  return requests.filter(({ model, key, group, channel, client, status, outcome, id }) => {
    const { tool, session, label } = client ?? {};
    const columns = [model, key, group, channel, tool, session, label, `${status}`, outcome, id];
    const shown = columns.map((column) => (column ?? "").toLowerCase());
    return words.every((word) => shown.some((column) => column.includes(word)));
  });
}

function Requests({ requests }: { readonly requests: readonly RequestRecord[] }) {
  if (requests.length === 0)
    return (
      <Empty title="No request has come since the gateway was started.">
        <p>
          Connect a tool with <code>gateway run claude</code>. What it sends appears here.
        </p>
      </Empty>
    );
  return (
    <Table
      name="Latest requests"
      columns={[
        ["Ended"],
        ["Model"],
        ["Key", "more"],
        ["Tool", "some"],
        ["Label", "rare"],
        ["Channel", "some"],
        ["Status"],
        ["First byte", "number some"],
        ["Duration", "number some"],
        ["In", "number some"],
        ["Cached", "number rare"],
        ["Out", "number some"],
        ["Charge", "number"],
      ]}
    >
      {requests.map((request) => (
        <RequestLine key={request.id} request={request} />
      ))}
    </Table>
  );
}

function RequestLine({ request }: { readonly request: RequestRecord }) {
  const { id, time, model, key, client, channel, firstByteMs, durationMs, usage, problem } = request;
  const ended = time + durationMs;
  return (
    <tr title={problem ?? undefined}>
      <td>
        <a
          href={hrefOf(["live", id])}
          aria-label={`Request that ended at ${formatClock(ended)}: how its charge was computed`}
        >
          <time title={`began ${formatFull(time)}`}>{formatClock(ended)}</time>
        </a>
      </td>
      <Name text={model} />
      <Name text={key} more="more" />
      <Name text={client?.tool ?? null} more="some" />
      <Name text={client?.label ?? null} more="rare" />
      <Name text={channel} more="some" />
      <td>
        <Status request={request} />
      </td>
      <td class="number some">{formatMs(firstByteMs)}</td>
      <td class="number some">{formatMs(durationMs)}</td>
      <td class="number some">{usage === null ? "–" : formatShort(sumInput(usage))}</td>
      <td class="number rare">{usage === null ? "–" : formatCached(usage)}</td>
      <td class="number some">{usage === null ? "–" : formatShort(usage["output"] ?? 0)}</td>
      <td class="number">{formatCharge(request)}</td>
    </tr>
  );
}

/** What a plan paid is not a charge. */
function formatCharge({ chargeUsd, planUsd }: RequestRecord): string {
  if (planUsd !== undefined) return `(${formatUsd(planUsd, 4)})`;
  return chargeUsd === null ? "–" : formatUsd(chargeUsd, 4);
}

function Status({ request: { status, outcome } }: { readonly request: RequestRecord }) {
  if (outcome === "complete" && status < 400) return <Pill tone="good">{status}</Pill>;
  const tone = outcome === "client_closed" ? "calm" : outcome === "refused" || status < 500 ? "warn" : "bad";
  return (
    <Pill tone={tone}>
      {status}
      <span class="more"> {outcome.replaceAll("_", " ")}</span>
    </Pill>
  );
}

function formatCached(usage: NonNullable<RequestRecord["usage"]>): string {
  const input = sumInput(usage);
  return input === 0 ? "–" : formatShare((usage["cache_read"] ?? 0) / input);
}

const INPUTS = /^(input|cache_read|cache_write|tool_prompt)/;

function sumInput(usage: NonNullable<RequestRecord["usage"]>): number {
  return Object.entries(usage).reduce(
    (sum, [kind, count]) => sum + (INPUTS.test(kind) ? (count ?? 0) : 0),
    0,
  );
}
