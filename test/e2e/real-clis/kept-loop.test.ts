// Codex in a loop, over a WebSocket: its requests continue the upstream's responses and do not show their calls. It is
// stopped as over HTTP. `REAL_CLIS=FOLDER bun test test/e2e/real-clis/kept-loop.test.ts`.

import { expect, test } from "bun:test";
import { CREDENTIAL, keyOf, startGatewayHere } from "../../harness/gateway.ts";
import { makeTempFolder } from "../../harness/temp.ts";
import { responseEvents, startSocketUpstream } from "../../harness/web-socket.ts";
import { hasTool, startProgram, TEST_MS, WANTED } from "./installed.ts";

const KEY = keyOf("responses");

/** The events of a response that calls the shell; of one without text for Codex's first request, which is empty. */
function callShell(request: Record<string, unknown>): Record<string, unknown>[] {
  const events = responseEvents(request, []);
  const [created, completed] = events;
  if (created === undefined || completed === undefined || request["generate"] === false) return events;
  const { id } = Object(created["response"]);
  const item = {
    id: `fc_${id}`,
    type: "function_call",
    call_id: `call_${id}`,
    name: "exec_command",
    arguments: JSON.stringify({ cmd: "ls /nothing" }),
    status: "completed",
  };
  return [created, { type: "response.output_item.done", output_index: 0, item }, completed];
}

test.skipIf(WANTED === "" || !hasTool("codex"))(
  "a loop of Codex over a WebSocket is refused at the fourth equal result, and Codex stops",
  async () => {
    const folder = makeTempFolder();
    const upstream = startSocketUpstream({
      reply: (request, socket) => {
        for (const event of callShell(request)) socket.send(JSON.stringify(event));
      },
    });
    const gateway = startGatewayHere({
      config: {
        channels: { main: { platform: "responses", base_url: upstream.url, credential: CREDENTIAL } },
        groups: { responses: { platform: "responses", channels: ["main"] } },
        keys: [{ name: "responses", group: "responses", secret: KEY, limits: { same_call: 4 } }],
      },
    });
    try {
      const around = { folder: folder.path, env: { CODEX_API_KEY: KEY } };
      const address = `openai_base_url=${gateway.url}/v1`;
      const command = ["codex", "exec", "--skip-git-repo-check", "-c", address, "Build it."];
      const { wasEnded, stderr } = await startProgram(command, around);
      expect(wasEnded).toBe(false);
      expect(stderr).toContain("the same tool call 4 times in a row");
      expect(stderr).not.toContain("Quota exceeded");
      const refused = gateway.records.filter(({ status }) => status === 429);
      expect(refused.map(({ problem }) => problem)).toEqual([
        expect.stringContaining("the same tool call 4 times in a row"),
      ]);
      expect(upstream.received.filter(({ generate }) => generate !== false)).toHaveLength(4);
      expect(upstream.received.at(-1)).toHaveProperty("previous_response_id");
    } finally {
      await gateway.stop();
      upstream.stop();
      folder.remove();
    }
  },
  TEST_MS,
);
