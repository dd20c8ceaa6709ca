// `gateway channels set` and `remove` check what `channels add` checks, and keep the comments of the config.

import { describe, expect, test } from "bun:test";
import { readFileSync, writeFileSync } from "node:fs";
import { startGateway } from "../../harness/gateway.ts";
import { startDemoUpstream } from "../../harness/upstreams/demo-upstream.ts";
import { useFolder } from "../../harness/temp.ts";
import { type Outcome, run, runOnTerminal } from "../driving.ts";

const CONFIG = `# mine
channels:
  # the main one
  main:
    platform: messages # native
    base_url: https://a.example # theirs
    credential: x
    models: [claude-*, "fast"] # some
  second: { platform: messages, base_url: "https://b.example", credential: y } # spare
groups:
  claude: { platform: messages, channels: [main, second] } # at cost
  only: { platform: messages, channels: [second] }
keys:
  - { name: laptop, group: claude, secret: sk-laptop } # by hand
`;

const folder = useFolder(CONFIG);
const { catalog, text } = folder;
const channels = (...args: string[]): Promise<Outcome> => run({ folder: folder.path }, "channels", ...args);

describe("`gateway channels set` changes a channel and checks it", () => {
  test("P18: `gateway channels set` changes, adds and removes settings, and every comment stays", async () => {
    const words = "priority=2 models=claude-*,gpt-5.4 timeouts.idle=20m aliases.gpt-5.4=claude-haiku-4-5";
    const { status, stderr } = await channels("set", "main", ...words.split(" "));
    expect(stderr).toBe(
      'Changed the channel "main": priority 2, models claude-*, gpt-5.4, timeouts.idle 20m, aliases.gpt-5.4 claude-haiku-4-5.\n',
    );
    expect(status).toBe(0);
    const main = catalog().channels.get("main");
    expect(main).toMatchObject({ priority: 2, models: ["claude-*", "gpt-5.4"] });
    expect(main?.timeouts.idleMs).toBe(1_200_000);
    expect(Object.fromEntries(main?.aliases ?? [])).toEqual({ "gpt-5.4": "claude-haiku-4-5" });
    const comments = (yaml: string): string[] => yaml.match(/#.*/g) ?? [];
    expect(comments(text())).toEqual(comments(CONFIG));

    expect(
      (await channels("set", "main", "timeouts.idle=none", "aliases.gpt-5.4=none", "models=none")).status,
    ).toBe(0);
    expect((await channels("set", "main", "priority=none")).status).toBe(0);
    expect(text()).toBe(CONFIG.replace('    models: [claude-*, "fast"] # some\n', ""));
  });

  test("`gateway channels set` changes a channel that is written on one line", async () => {
    expect(
      (await channels("set", "second", "weight=3", "base_url=https://c.example", "--no-check")).status,
    ).toBe(0);
    expect(text()).toContain(
      "  second: { platform: messages, base_url: https://c.example, credential: y, weight: 3 } # spare\n",
    );
  });

  test.each([
    [["main", "priorty=2"], 'There is no setting "priorty" (did you mean "priority"?). Settings: base_url,'],
    [["main", "platform=relay"], 'There is no setting "platform"'],
    [["main", "priority"], "priority: expected priority=VALUE or priority=none."],
    [["main", "base_url=none"], "base_url cannot be removed."],
    [["main", "priority=high"], "channels.main.priority"],
    [["main", "credential=sk-ant-in-the-arguments"], "`--credential -` reads a secret."],
    [["main"], "Nothing to change."],
  ])("`channels set` refuses %j", async (args, problem) => {
    const { status, stderr } = await channels("set", ...args);
    expect(stderr).toContain(problem);
    expect(status).toBe(2);
    expect(text()).toBe(CONFIG);
  });

  test("`gateway channels set` suggests the nearest name for an unknown channel", async () => {
    const { status, stderr } = await channels("set", "mian", "priority=2");
    expect(stderr).toBe(
      'gateway: There is no channel "mian" (did you mean "main"?). Known channels: main, second.\n',
    );
    expect(status).toBe(1);
  });

  test("`gateway channels set` checks a new address and credential, and puts the credential into gateway.env", async () => {
    const strict = startDemoUpstream({ credential: "secret-12345" });
    const args = ["channels", "set", "main", `base_url=${strict.url}`, "--credential", "-"];
    const right = await run({ folder: folder.path, stdin: "secret-12345\n" }, ...args);
    const wrong = await run({ folder: folder.path, stdin: "secret-67890\n" }, ...args);
    strict.stop();
    expect(right.stderr).toMatch(
      /^The upstream of "main" accepts the credential and lists \d+ models\nChanged/,
    );
    expect([right.status, wrong.status]).toEqual([0, 1]);
    expect(right.stderr + wrong.stderr + text()).not.toContain("secret-");
    expect(catalog().channels.get("main")?.credential).toBe("secret-12345");
  });

  describe("a credential that refers to a variable is changed without harm to other users of the variable", () => {
    const environment = (): string => readFileSync(folder.join("gateway.env"), "utf8");
    const replace = (env: Readonly<Record<string, string>> = {}): Promise<Outcome> =>
      run(
        { folder: folder.path, env, stdin: "new-secret-1\n" },
        ..."channels set main --credential - --no-check".split(" "),
      );
    const write = (config: string, variables: string): void => {
      writeFileSync(folder.join("gateway.yaml"), config, { mode: 0o600 });
      writeFileSync(folder.join("gateway.env"), variables, { mode: 0o600 });
    };
    const REFERRING = CONFIG.replace("credential: x", "credential: ${MAIN_KEY}");

    test("a new credential gets a variable of the channel's own, because another config may use the old variable", async () => {
      write(REFERRING, "OTHER=1\nMAIN_KEY=old-secret-1\n");
      expect((await replace()).stderr).toContain("stays: another config");
      expect(environment()).toBe("OTHER=1\nMAIN_KEY=old-secret-1\nGATEWAY_MAIN_API_KEY=new-secret-1\n");
      const changed = text();
      expect((await replace()).stderr).toBe('Changed the channel "main": credential.\n');
      expect(text()).toBe(changed);
    });

    test("if a credential's variable is set nowhere, the channel gets a variable of its own in gateway.env", async () => {
      write(REFERRING, "OTHER=1\n");
      expect((await replace()).status).toBe(0);
      expect(text()).toBe(REFERRING.replace("MAIN_KEY", "GATEWAY_MAIN_API_KEY"));
      expect(environment()).toBe("OTHER=1\nGATEWAY_MAIN_API_KEY=new-secret-1\n");
    });

    test.each([
      ["MAIN_KEY", "GATEWAY_MAIN_API_KEY"],
      ["GATEWAY_MAIN_API_KEY", "GATEWAY_MAIN_2_API_KEY"],
    ])(
      "the variable %s, which another channel reads, keeps its value, and the new variable is %s",
      async (old, own) => {
        const shared = CONFIG.replace("credential: x", `credential: \${${old}}`).replace(
          "credential: y",
          `credential: "\${${old}}"`,
        );
        write(shared, `${old}=old-secret-1\n`);
        expect((await replace()).status).toBe(0);
        expect(text()).toBe(shared.replace(`credential: \${${old}}`, `credential: \${${own}}`));
        expect(environment()).toBe(`${old}=old-secret-1\n${own}=new-secret-1\n`);
      },
    );

    test("a variable that the shell exports is replaced by another one, in the credential and the headers", async () => {
      const headers = "    headers: { authorization: 'Bearer ${MAIN_KEY}' }\n";
      const config = REFERRING.replace("    models:", `${headers}    models:`);
      write(config, "MAIN_KEY=old-secret-1\n");
      const { status } = await replace({ MAIN_KEY: "exported", MAIN_API_KEY: "exported too" });
      expect(status).toBe(0);
      expect(text()).not.toContain("${MAIN_KEY}");
      const main = catalog().channels.get("main");
      expect([main?.credential, JSON.stringify(main?.headers)]).toEqual([
        "new-secret-1",
        expect.stringContaining("Bearer new-secret-1"),
      ]);
    });

    test("if only the running gateway's environment has a credential's variable, the new credential gets another one", async () => {
      const env = { MAIN_KEY: "old-secret-1", MAIN_API_KEY: "another" };
      const gateway = await startGateway({ config: `listen: { port: 0 }\n${REFERRING}`, folder, env });
      await replace();
      await gateway.stop();
      expect(text()).toContain("credential: ${GATEWAY_MAIN_API_KEY}");
      expect(environment()).toEndWith("\nGATEWAY_MAIN_API_KEY=new-secret-1\n");
    });
  });

  test("`gateway channels set` shows neither a credential nor a header's value", async () => {
    const words = ["headers.authorization=Bearer secret-12345", "credential=${MAIN_KEY}"];
    const { status, stdout, stderr } = await channels("set", "main", ...words, "--no-check");
    expect(stdout + stderr).toBe('Changed the channel "main": headers.authorization, credential.\n');
    expect(status).toBe(0);
    expect(text()).toContain("Bearer secret-12345");
  });

  test("`gateway channels set` changes nothing when the upstream refuses the credential", async () => {
    using refusing = Bun.serve({
      port: 0,
      hostname: "127.0.0.1",
      fetch: () => new Response("", { status: 401 }),
    });
    const address = `base_url=http://127.0.0.1:${refusing.port}`;
    const refused = await channels("set", "main", address);
    expect(refused.stderr).toContain(
      'The upstream of "main" refuses the credential (401). Nothing was changed',
    );
    expect(refused.status).toBe(1);
    expect(text()).toBe(CONFIG);
    expect((await channels("set", "main", address, "--no-check")).status).toBe(0);
  });
});

describe("`gateway channels remove` removes a channel from the config and its groups", () => {
  test("`gateway channels remove` removes the channel from its groups too", async () => {
    const { status, stderr } = await channels("remove", "main", "--yes");
    expect(stderr).toBe('Removed the channel "main" from the group "claude". The ledger keeps its lines.\n');
    expect(status).toBe(0);
    expect([...catalog().channels.keys()]).toEqual(["second"]);
    expect(text()).toContain("  claude: { platform: messages, channels: [second] } # at cost\n");
    expect(text()).toContain(
      '  second: { platform: messages, base_url: "https://b.example", credential: y } # spare\n',
    );
  });

  test("P21: `gateway channels remove` refuses what would leave a group without channels, and names the group", async () => {
    const { status, stderr } = await channels("remove", "second", "--yes");
    expect(stderr).toBe(
      'gateway: "second" was not removed: the group "only" has no other channel. ' +
        "Use `gateway groups remove only` first, or add a channel to it.\n",
    );
    expect(status).toBe(1);
    expect(text()).toBe(CONFIG);
  });

  test("`gateway channels remove` asks on a terminal, and needs --yes without one", async () => {
    expect((await channels("remove", "main")).stderr).toContain("--yes is missing");
    const screen = runOnTerminal({ folder: folder.path }, "channels", "remove", "main");
    await screen.shows('Remove the channel "main" from the group "claude" for good?');
    screen.press("n");
    expect(await screen.status).toBe(1);
    expect(text()).toBe(CONFIG);
  });
});
