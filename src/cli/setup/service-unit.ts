// The texts of the systemd unit and the launchd agent, quoted so that any path arrives unchanged.

/** Marks a unit as ours. A file without it is never overwritten. */
export const MARK = "Written by `gateway service install`";

export interface ServiceSpec {
  /** The executable and its first arguments. */
  readonly command: readonly string[];
  readonly configPath: string;
  /** A file of `NAME=value` lines, because a service does not see the variables of a shell. */
  readonly envPath: string;
}

export const LABEL = "local.gateway";
export const UNIT_NAME = "gateway.service";

/** Longer than the gateway waits for running streams. */
const STOP_SECONDS = 40;

export function writeUnit({ command, configPath, envPath }: ServiceSpec): string {
  const words = [...command, "serve", "--config", configPath];
  // systemd refuses such characters in the path of an executable.
  const isOdd = /["'\\$]/.test(command[0] ?? "");
  const start = (isOdd ? ["/bin/sh", "-c", 'exec "$0" "$@"', ...words] : words)
    .map(quoteForSystemd)
    .join(" ");
  return `# ${MARK}; \`gateway service uninstall\` removes it.
[Unit]
Description=gateway between AI tools and model platforms

[Service]
ExecStart=${start}
# Variables that the config refers to, one NAME=value per line. The file is optional.
EnvironmentFile=-${escapeSpecifiers(envPath)}
Restart=on-failure
RestartSec=2
# Status 2 is an invalid config file: a restart does not fix it.
RestartPreventExitStatus=2
TimeoutStopSec=${STOP_SECONDS}
UMask=0077
NoNewPrivileges=yes

[Install]
WantedBy=default.target
`;
}

function escapeSpecifiers(text: string): string {
  return text.replaceAll("%", "%%");
}

function quoteForSystemd(word: string): string {
  const escaped = escapeSpecifiers(word)
    .replaceAll("\\", "\\\\")
    .replaceAll('"', '\\"')
    .replaceAll("$", "$$$$");
  return /^[\w@%+=:,./-]+$/.test(word) ? escaped : `"${escaped}"`;
}

/** launchd cannot read a file of variables. A shell reads it, then replaces itself with the gateway. */
const READ_ENV = 'set -a; [ ! -f "$0" ] || . "$0"; set +a; exec "$@"';

export function writeAgent({ command, configPath, envPath }: ServiceSpec, logPath: string): string {
  const words = ["/bin/sh", "-c", READ_ENV, envPath, ...command, "serve", "--config", configPath];
  const list = words.map((word) => `    <string>${escapeXml(word)}</string>`).join("\n");
  return `<?xml version="1.0" encoding="UTF-8"?>
<!-- ${MARK}; \`gateway service uninstall\` removes it. -->
<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
<plist version="1.0">
<dict>
  <key>Label</key><string>${LABEL}</string>
  <key>ProgramArguments</key>
  <array>
${list}
  </array>
  <!-- Otherwise every file in this folder runs at login. \`launchctl enable\` overrides this. -->
  <key>Disabled</key><true/>
  <key>RunAtLoad</key><true/>
  <key>KeepAlive</key><dict><key>SuccessfulExit</key><false/></dict>
  <key>ThrottleInterval</key><integer>10</integer>
  <key>ExitTimeOut</key><integer>${STOP_SECONDS}</integer>
  <key>Umask</key><integer>63</integer>
  <key>StandardOutPath</key><string>${escapeXml(logPath)}</string>
  <key>StandardErrorPath</key><string>${escapeXml(logPath)}</string>
</dict>
</plist>
`;
}

/** Windows has no unit of its own for a program of the user's session: a task starts it at logon. `conhost --headless` keeps
 *  its window away, and cmd writes its log. The gateway reads its file of variables itself. */
export function writeTask({ command, configPath }: ServiceSpec, user: string, logPath: string): string {
  const words = [...command, "serve", "--config", configPath].map((word) => `"${word}"`).join(" ");
  const args = `--headless cmd.exe /d /s /c "${words} >> "${logPath}" 2>&1"`;
  return `<?xml version="1.0"?>
<!-- ${MARK}; \`gateway service uninstall\` removes it. -->
<Task version="1.2" xmlns="http://schemas.microsoft.com/windows/2004/02/mit/task">
  <Triggers>
    <LogonTrigger><Enabled>true</Enabled><UserId>${escapeXml(user)}</UserId></LogonTrigger>
  </Triggers>
  <Principals>
    <Principal id="user">
      <UserId>${escapeXml(user)}</UserId>
      <LogonType>InteractiveToken</LogonType>
      <RunLevel>LeastPrivilege</RunLevel>
    </Principal>
  </Principals>
  <Settings>
    <MultipleInstancesPolicy>IgnoreNew</MultipleInstancesPolicy>
    <DisallowStartIfOnBatteries>false</DisallowStartIfOnBatteries>
    <StopIfGoingOnBatteries>false</StopIfGoingOnBatteries>
    <ExecutionTimeLimit>PT0S</ExecutionTimeLimit>
    <RestartOnFailure><Interval>PT1M</Interval><Count>10</Count></RestartOnFailure>
  </Settings>
  <Actions Context="user">
    <Exec>
      <Command>conhost.exe</Command>
      <Arguments>${escapeXml(args)}</Arguments>
    </Exec>
  </Actions>
</Task>
`;
}

function escapeXml(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}
