// After an upgrade the service gets the new executable, when no stream is open. A stand-in for systemctl writes down what
// it is asked.

import { expect, test } from "bun:test";
import { chmodSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { makeConfig, keyOf, startGateway } from "../../../harness/gateway.ts";
import { makeTempFolder } from "../../../harness/temp.ts";
import { startDemoUpstream } from "../../../harness/upstreams/demo-upstream.ts";

const SERVICE = join(import.meta.dir, "../../../../src/cli/setup/service.ts");

test.skipIf(process.platform !== "linux")(
  "a service is started again after the last stream has ended, and not before",
  async () => {
    using folder = makeTempFolder();
    const asked = folder.join("asked");
    mkdirSync(folder.join("bin"));
    writeFileSync(
      folder.join("bin/systemctl"),
      `#!/bin/sh\necho "$*" >> '${asked}'\n[ "$2" != is-active ] || echo active\n`,
    );
    chmodSync(folder.join("bin/systemctl"), 0o755);
    mkdirSync(folder.join("systemd/user"), { recursive: true });
    writeFileSync(folder.join("systemd/user/gateway.service"), "");
    const env = { XDG_RUNTIME_DIR: folder.path, XDG_CONFIG_HOME: folder.path };
    const upstream = startDemoUpstream();
    const gateway = await startGateway({ config: makeConfig(upstream), env });
    const body = JSON.stringify({
      model: "demo-words-500_pace-20",
      max_tokens: 1000,
      stream: true,
      messages: [{ role: "user", content: "Hello" }],
    });
    const headers = { "x-api-key": keyOf("messages"), "content-type": "application/json" };
    const leave = new AbortController();
    const { signal } = leave;
    const answer = await fetch(`${gateway.url}/v1/messages`, { method: "POST", headers, body, signal });
    expect(answer.status).toBe(200);
    const code = `const { restartWhenIdle } = await import(${JSON.stringify(SERVICE)}); await restartWhenIdle();`;
    const child = Bun.spawn([process.execPath, "-e", code], {
      env: { ...process.env, ...env, PATH: `${folder.join("bin")}:${process.env["PATH"]}` },
      stderr: "pipe",
    });
    let said = "";
    for await (const bytes of child.stderr) {
      said += new TextDecoder().decode(bytes);
      if (!said.includes("when no stream is open") || signal.aborted) continue;
      // Half a second of the stream.
      const chunks = answer.body?.getReader();
      for (let count = 0; count < 10; count += 1) expect((await chunks?.read())?.done).toBe(false);
      expect(readFileSync(asked, "utf8")).not.toContain("restart");
      leave.abort();
    }
    expect(await child.exited).toBe(0);
    expect(said).toContain("The service has been started again, with this version.");
    expect(readFileSync(asked, "utf8")).toEndWith("--user restart gateway.service\n");
    await gateway.stop();
    upstream.stop();
  },
);
