// A conversation with a model of another provider goes on after the gateway was killed: nothing of it was in its memory.

import { expect, test } from "bun:test";
import { statSync } from "node:fs";
import { type Any, readEvents } from "../../bridges/calls.ts";
import { formRequest, formUser, keepAnswer, type ModelTurn } from "../../bridges/session.ts";
import { startGateway } from "../../harness/gateway.ts";
import { makeTempFolder } from "../../harness/temp.ts";
import { playList, startScriptedUpstream } from "./scripted-upstream.ts";

const CALL = { id: "call_1", name: "Read", args: { path: "a" } };
const SCRIPT: readonly ModelTurn[] = [
  { thought: "One file.", text: "I look.", calls: [CALL] },
  { thought: "Enough.", text: "Done.", calls: [] },
];

test.each(["none", "a-real-credential-0123"])(
  "a session goes on after the gateway was killed, with its thoughts (credential: %s)",
  async (credential) => {
    using folder = makeTempFolder();
    const upstream = startScriptedUpstream("chat", playList(SCRIPT));
    const config = {
      channels: { far: { platform: "chat", base_url: upstream.url, credential, free: true } },
      groups: { g: { platform: "messages", channels: ["far"], convert: true } },
      keys: [{ name: "k", group: "g", secret: "sk-test-restart" }],
    };
    const start = () => startGateway({ config, folder, env: { XDG_RUNTIME_DIR: folder.path } });
    const ask = async (url: string, history: readonly Any[]): Promise<Any[]> => {
      const response = await fetch(`${url}/v1/messages`, {
        method: "POST",
        headers: { "x-api-key": "sk-test-restart", "content-type": "application/json" },
        body: JSON.stringify(formRequest("messages", history, true)),
      });
      return keepAnswer("messages", readEvents(await response.text()));
    };
    const first = formUser("messages", { results: [], text: "Hello", image: false }, []);
    const before = await start();
    const kept = await ask(before.url, first);
    before.signal("SIGKILL");
    await before.exited;
    const after = await start();
    const next = formUser("messages", { results: ["one"], text: null, image: false }, [CALL]);
    await ask(after.url, [...first, ...kept, ...next]);
    await after.stop();
    upstream.stop();
    const [one, two]: Any = upstream.asked;
    expect(upstream.problems).toEqual([]);
    const said = two.body.messages.find(({ role }: Any) => role === "assistant");
    expect(said).toMatchObject({ reasoning_content: "One file." });
    expect(two.text).toStartWith(one.text.slice(0, -2));
    const key = folder.join("gateway.yaml.envelopes");
    expect(statSync(key).mode & 0o777).toBe(0o600);
  },
);
