// The texts of the systemd unit and the launchd agent, quoted so that any path arrives as it is.

/** The first words of what we write: a file without them is not ours to overwrite. */
export const MARK = "Written by `gateway service install`";

export interface Wish {
  /** The executable, and what comes before its own arguments. */
  readonly command: readonly string[];
  readonly configPath: string;
  /** `NAME=value` lines: the service does not see the variables of a shell. */
  readonly envPath: string;
}

export const LABEL = "local.gateway";
export const UNIT_NAME = "gateway.service";

/** Longer than a gateway lets running streams finish. */
const STOP_SECONDS = 40;

export function writeUnit({ command, configPath, envPath }: Wish): string {
  const words = [...command, "serve", "--config", configPath];
  // systemd refuses such characters in the name of what it starts itself.
  const isOdd = /["'\\$]/.test(command[0] ?? "");
  const start = (isOdd ? ["/bin/sh", "-c", 'exec "$0" "$@"', ...words] : words)
    .map(quoteForSystemd)
    .join(" ");
  return `# ${MARK}; \`gateway service uninstall\` takes it away.
[Unit]
Description=gateway between AI tools and model platforms

[Service]
ExecStart=${start}
# Credentials that the config refers to, NAME=value on each line; it need not exist.
EnvironmentFile=-${escapeSpecifiers(envPath)}
Restart=on-failure
RestartSec=2
# A bad config file does not mend itself.
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

/** launchd reads no file of variables: a shell does, and is gone before the gateway begins. */
const READ_ENV = 'set -a; [ ! -f "$0" ] || . "$0"; set +a; exec "$@"';

export function writeAgent({ command, configPath, envPath }: Wish, logPath: string): string {
  const words = ["/bin/sh", "-c", READ_ENV, envPath, ...command, "serve", "--config", configPath];
  const list = words.map((word) => `    <string>${escapeXml(word)}</string>`).join("\n");
  return `<?xml version="1.0" encoding="UTF-8"?>
<!-- ${MARK}; \`gateway service uninstall\` takes it away. -->
<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
<plist version="1.0">
<dict>
  <key>Label</key><string>${LABEL}</string>
  <key>ProgramArguments</key>
  <array>
${list}
  </array>
  <!-- What lies in this folder runs at login otherwise; \`launchctl enable\` overrules it. -->
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

function escapeXml(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}
