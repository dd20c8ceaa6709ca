// Tests the files and the systemctl calls of `gateway service`. A script on the PATH stands in for systemctl.

import { describe, expect, test } from "bun:test";
import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { writeAgent, writeTask, writeUnit } from "../../../src/cli/setup/service-unit.ts";
import { makeTempFolder, type TempFolder } from "../../harness/temp.ts";
import { run } from "../driving.ts";

const ODD = `/srv/a "b" $c %d & <e> 'f'\\g`;

describe("P199: the systemd unit starts the gateway with its arguments", () => {
  const unit = writeUnit({
    command: [`${ODD}/gateway`],
    configPath: `${ODD}/gateway.yaml`,
    envPath: "/srv/gateway.env",
  });

  test("the systemd unit quotes paths, so that no character has a special meaning", () => {
    const quoted = `/srv/a \\"b\\" $$c %%d & <e> 'f'\\\\g`;
    expect(unit).toContain(`"${quoted}/gateway" serve --config "${quoted}/gateway.yaml"\n`);
  });

  test("the systemd unit does not quote plain paths", () => {
    const plain = writeUnit({
      command: ["/usr/bin/gateway"],
      configPath: "/etc/g.yaml",
      envPath: "/etc/50%.env",
    });
    expect(plain).toContain("\nExecStart=/usr/bin/gateway serve --config /etc/g.yaml\n");
    expect(plain).toContain("\nEnvironmentFile=-/etc/50%%.env\n");
    // 2 is the exit status for an invalid config.
    for (const word of ["Restart=on-failure", "RestartPreventExitStatus=2", "WantedBy=default.target"])
      expect(plain).toContain(`\n${word}\n`);
  });

  const names = ["plain", "with space", `a "b" $c 'd' \\e`];
  test.skipIf(Bun.which("systemd-analyze") === null).each(names)(
    "systemd-analyze accepts the unit of a gateway in a folder with this name: %s",
    async (name) => {
      using folder = makeTempFolder();
      const odd = folder.join(name);
      mkdirSync(odd);
      writeFileSync(`${odd}/gateway`, "#!/bin/sh\n");
      chmodSync(`${odd}/gateway`, 0o755);
      const text = writeUnit({
        command: [`${odd}/gateway`],
        configPath: `${odd}/gateway.yaml`,
        envPath: `${odd}/gateway.env`,
      });
      writeFileSync(folder.join("gateway.service"), text);
      const child = Bun.spawn(["systemd-analyze", "--user", "verify", folder.join("gateway.service")], {
        env: { ...process.env, XDG_RUNTIME_DIR: folder.path },
        stderr: "pipe",
      });
      const complaints = (await child.stderr.text()).split("\n").filter((line) => line.includes("gateway"));
      expect(complaints).toEqual([]);
      expect(await child.exited).toBe(0);
    },
  );
});

describe("P199: the task at logon on Windows starts the gateway with its arguments", () => {
  const write = (command: readonly string[], folder: string): { xml: string; words: string } => {
    const spec = { command, configPath: `${folder}\\a & b\\gateway.yaml`, envPath: "" };
    const xml = writeTask(spec, "HOME\\R&D", `${folder}\\the log.txt`);
    const script =
      "import sys,xml.etree.ElementTree as e; print(e.fromstring(sys.stdin.buffer.read()).find('.//{*}Arguments').text)";
    const [, raw = ""] = /<Arguments>(.*)<\/Arguments>/.exec(xml) ?? [];
    if (Bun.which("python3") === null)
      return { xml, words: raw.replaceAll("&gt;", ">").replaceAll("&lt;", "<").replaceAll("&amp;", "&") };
    const { stdout } = Bun.spawnSync(["python3", "-c", script], { stdin: Buffer.from(xml) });
    return { xml, words: stdout.toString().trim() };
  };

  test("the task on Windows is well-formed, has no time limit, and starts without a window when its user logs on", () => {
    const { xml, words } = write(["C:\\Program Files\\gateway.exe"], "C:\\x");
    expect(xml.match(/<UserId>HOME\\R&amp;D<\/UserId>/g)).toHaveLength(2);
    expect(xml).toContain("<ExecutionTimeLimit>PT0S</ExecutionTimeLimit>");
    expect(xml).toContain("<Command>conhost.exe</Command>");
    expect(words).toBe(
      String.raw`--headless cmd.exe /d /s /c ""C:\Program Files\gateway.exe" "serve" "--config" "C:\x\a & b\gateway.yaml" >> "C:\x\the log.txt" 2>&1"`,
    );
  });

  test.skipIf(process.platform !== "win32")(
    "the task passes its arguments to the gateway and writes a log, also in folders with spaces",
    () => {
      using folder = makeTempFolder();
      const script = folder.join("show it.js");
      writeFileSync(script, "console.log(JSON.stringify(process.argv.slice(2)))");
      const { words } = write([process.execPath, script], folder.path);
      const shell = words.replace(/^--headless cmd\.exe /, "");
      Bun.spawnSync(["cmd.exe", shell], { windowsVerbatimArguments: true });
      const [line = ""] = /^\[.*/m.exec(readFileSync(folder.join("the log.txt"), "utf8")) ?? [];
      expect(JSON.parse(line)).toEqual(["serve", "--config", `${folder.path}\\a & b\\gateway.yaml`]);
    },
  );
});

describe("P199: the launchd agent starts the gateway with its variables", () => {
  const agent = writeAgent(
    { command: [`${ODD}/gateway`], configPath: `${ODD}/gateway.yaml`, envPath: `${ODD}/gateway.env` },
    "/Users/a&b/Library/Logs/gateway.log",
  );

  test("the launchd agent is off until launchctl enables it", () => {
    expect(agent).toContain("<key>Disabled</key><true/>");
  });

  test.skipIf(Bun.which("python3") === null)("the agent's property list is valid", async () => {
    const script = "import plistlib,json,sys; print(json.dumps(plistlib.loads(sys.stdin.buffer.read())))";
    const child = Bun.spawn(["python3", "-c", script], { stdin: new Blob([agent]), stdout: "pipe" });
    const list = JSON.parse(await child.stdout.text());
    expect(list).toMatchObject({
      Label: "local.gateway",
      RunAtLoad: true,
      KeepAlive: { SuccessfulExit: false },
    });
    expect(list.StandardErrorPath).toBe("/Users/a&b/Library/Logs/gateway.log");
    expect(list.ProgramArguments.slice(3)).toEqual([
      `${ODD}/gateway.env`,
      `${ODD}/gateway`,
      "serve",
      "--config",
      `${ODD}/gateway.yaml`,
    ]);
  });

  test.skipIf(process.platform === "win32")(
    "the launchd agent's shell reads the file of variables, and then becomes the gateway",
    async () => {
      using folder = makeTempFolder();
      const envPath = folder.join("a b.env");
      writeFileSync(envPath, "# comment\nCREDENTIAL='x y'\n");
      const words = /<string>(set -a.*?)<\/string>/.exec(agent)?.[1]?.replaceAll("&gt;", ">") ?? "";
      const script = words.replaceAll("&amp;", "&").replaceAll("&lt;", "<");
      const show = ["sh", "-c", 'echo "$CREDENTIAL $1"', "sh", "arg one"];
      const child = Bun.spawn(["/bin/sh", "-c", script, envPath, ...show], { stdout: "pipe" });
      expect(await child.stdout.text()).toBe("x y arg one\n");
      const without = Bun.spawn(["/bin/sh", "-c", script, "/nonexistent", ...show], { stdout: "pipe" });
      expect(await without.stdout.text()).toBe(" arg one\n");
    },
  );
});

const CONFIG = `
channels: { c: { platform: messages, base_url: "http://127.0.0.1:9", credential: "\${SOME_KEY}" } }
groups: { g: { platform: messages, channels: [c] } }
`;

describe.skipIf(process.platform !== "linux")("P199: `gateway service` installs and removes the unit", () => {
  const prepare = (folder: TempFolder) => {
    mkdirSync(folder.join("bin"));
    const asked = folder.join("asked");
    writeFileSync(
      folder.join("bin", "systemctl"),
      `#!/bin/sh\necho "$*" >> '${asked}'\ncase "$2" in is-enabled) echo enabled;; is-active) echo active;; esac\n`,
    );
    chmodSync(folder.join("bin", "systemctl"), 0o755);
    writeFileSync(folder.join("gateway.yaml"), CONFIG, { mode: 0o600 });
    const env = { HOME: folder.path, PATH: `${folder.join("bin")}:${process.env["PATH"]}` };
    return {
      unit: folder.join(".config/systemd/user/gateway.service"),
      asked: () => (existsSync(asked) ? readFileSync(asked, "utf8").trim().split("\n") : []),
      service: (...words: string[]) => run({ folder: folder.path, env }, "service", ...words),
    };
  };

  test("`service install` writes the unit, starts nothing, and prints the command that starts it", async () => {
    using folder = makeTempFolder();
    const { unit, asked, service } = prepare(folder);
    const { status, stdout, stderr } = await service("install");
    expect({ status, stdout }).toEqual({ status: 0, stdout: `${unit}\n` });
    expect(stderr).toContain(
      "systemctl --user daemon-reload && systemctl --user enable --now gateway.service",
    );
    expect(stderr).toContain(`Put SOME_KEY into ${folder.join("gateway.env")}`);
    expect(readFileSync(unit, "utf8")).toMatch(/ serve --config "?[^"]*gateway.yaml"?\n/);
    expect(asked()).toEqual([]);
  });

  test("`service install --enable` starts the service; service uninstall stops it and removes the unit", async () => {
    using folder = makeTempFolder();
    const { unit, asked, service } = prepare(folder);
    expect((await service("install", "--enable")).status).toBe(0);
    expect(asked()).toEqual(["--user daemon-reload", "--user enable --now gateway.service"]);
    expect(JSON.parse((await service("status", "--json")).stdout)).toEqual({
      installed: true,
      enabled: true,
      running: true,
      path: unit,
    });
    expect((await service("uninstall")).status).toBe(0);
    expect(existsSync(unit)).toBe(false);
    expect(asked().slice(-2)).toEqual(["--user disable --now gateway.service", "--user daemon-reload"]);
    expect(await service("status")).toMatchObject({ status: 3, stdout: "not installed\n" });
  });

  test("a unit that somebody else wrote is neither overwritten nor removed", async () => {
    using folder = makeTempFolder();
    const { unit, service } = prepare(folder);
    mkdirSync(folder.join(".config/systemd/user"), { recursive: true });
    writeFileSync(unit, "[Service]\n");
    expect((await service("install")).status).toBe(1);
    expect((await service("uninstall")).status).toBe(1);
    expect(readFileSync(unit, "utf8")).toBe("[Service]\n");
  });
});
