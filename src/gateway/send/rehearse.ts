// Runs code before a request needs it, because the first run of code is slow.

import { dialectOf } from "../../dialects/platforms.ts";
import { listWanted } from "../../dialects/prompt/prompt.ts";
import { Fields } from "../../lib/http/fields.ts";
import { originOf } from "../../lib/http/upstream.ts";
import { scanSteps } from "../../lib/scan.ts";
import { runAtOnce } from "../../lib/time/next-turn.ts";
import type { Gateway } from "../gateway.ts";
import { describeBaseUrl } from "../intake/own-host.ts";
import { secretsOf } from "../intake/secrets.ts";
import { requestFields } from "./headers.ts";
import { fetchWhole } from "../upstream/fetch.ts";

const PROMPT = '{"model":"m","messages":[{"role":"user","content":[{"type":"text","text":"a"}]}]}';
const ANSWER = '{"type":"message","model":"m","usage":{"input_tokens":1,"output_tokens":1}}';
const ANSWERS = { "application/json": ANSWER, "text/event-stream": `data: ${ANSWER}\n\n` };
const DEADLINES = { connectMs: 1000, firstByteMs: 1000, idleMs: 1000 };

export async function rehearse({ catalog, client }: Gateway, port: number): Promise<void> {
  for (const platform of new Set(catalog.groups.values().map((group) => group.platform))) {
    const dialect = dialectOf(platform);
    const { names, lists } = listWanted(dialect.promptLayout);
    runAtOnce(scanSteps(Buffer.from(PROMPT), { names: new Set(names), lists }));
    for (const [type, answer] of Object.entries(ANSWERS)) {
      const meter = dialect.openMeter(type);
      meter.see(Buffer.from(answer));
      meter.read();
    }
  }
  const fields = requestFields(new Fields().push(["user-agent", "gateway"]), false, secretsOf(catalog));
  const origin = originOf(new URL(describeBaseUrl(catalog.listen.host, port)));
  const request = {
    origin,
    method: "GET",
    target: "/healthz",
    fields,
    body: null,
    deadlines: DEADLINES,
  };
  await fetchWhole(client, request, DEADLINES.idleMs);
}
