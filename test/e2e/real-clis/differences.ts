// How a tool's requests through the gateway differ from those without it, if every channel has the vendor's
// own address. `npm run test:tools` compares the requests of the released tools, and fails for every
// difference that is not here. Each is wanted or cannot be changed. docs/tools.md has these as a table.

import type { ToolName } from "../../../src/dialects/platforms.ts";

export interface Difference {
  /** The tools that differ. Empty: all of them. */
  readonly tools: readonly ToolName[];
  /** The difference as the comparison names it. */
  readonly part: RegExp;
  readonly what: string;
  readonly because: string;
}

export const DIFFERENCES: readonly Difference[] = [
  {
    tools: [],
    part: /^header (?:accept-encoding|connection|content-length|sec-fetch-mode|sec-websocket-(?:extensions|key))$/,
    what: "`accept-encoding` is `identity`; `connection`, `content-length`, `sec-fetch-mode` and `sec-websocket-*` are not the tool's",
    because: "the gateway meters answers, opens its own connections, and forwards no fields of browsers",
  },
  {
    tools: ["claude", "opencode", "pi"],
    part: /^request GET \/v1(?:beta)?\/models$/,
    what: "one request more, for the list of models",
    because: "the tool, or `gateway run` for it, reads which models the key can use",
  },
  {
    tools: ["claude"],
    part: /^(?:header x-(?:claude-1p-request-class|claude-code-(?:agent-type|prev-tool-durations|prompt-id|request-class|sandy-plover)|client-request-id)|beta (?:cache-diagnosis|claude-code-side-query|fallback-credit|mid-conversation-system|prompt-caching-scope|thinking-binding-controls|tool-provenance)\S*|body (?:diagnostics\S*|system\S*))$/,
    what: "no global cache mark on tools and system prompt, no question why a cache was missed (`diagnostics`), no classes of requests and agents, no durations of tools, fewer betas",
    because: "Claude Code sends them to Anthropic's own address only",
  },
  {
    tools: ["claude"],
    part: /^request \w+ \/api\/(?:claude_c\w+|eval|event_logging|oauth|directory)\b\S*$/,
    what: "with an API key: fewer requests for settings, switches and telemetry, or none",
    because: "Claude Code makes some of them at Anthropic's own address only, and others not every time",
  },
  {
    tools: ["claude"],
    part: /^(?:body (?:tools\.Artifact|safeguards)\b\S*|request POST \/api\/artifacts\/mcp)$/,
    what: "on a terminal: neither the Artifact tool nor its skills",
    because: "Claude Code offers them at Anthropic's own address only",
  },
  {
    tools: ["claude"],
    part: /^small model$/,
    what: "the probe of a plan's quota goes to the newest Haiku instead of Haiku 4.5; in 2.1.282, page summaries do, too",
    because: "`gateway run` names one small model, as below",
  },
  {
    tools: ["claude"],
    part: /^(?:beta (?:redact-thinking|thinking-display-updates)\S*|body thinking\.display)$/,
    what: "2.1.282 on a terminal: no thoughts in the answer",
    because: "only newer versions ask for them at another address than Anthropic's own",
  },
  {
    tools: ["codex"],
    part: /^(?:header version|body client_metadata\.mcp_attribution)$/,
    what: "no field `version` (`user-agent` still has the version) and no `mcp_attribution`",
    because:
      "Codex adds them for its built-in provider only, and that provider sends no header for a key or a label",
  },
  {
    tools: ["codex"],
    part: /^request GET \/v1\/responses$/,
    what: "one attempt to open a WebSocket, not several, if the vendor refuses it",
    because: "the gateway answers 426, after which Codex goes on over HTTP at once",
  },
  {
    tools: ["codex"],
    part: /^request GET \/backend-api\/(?:codex\/models|(?:ps\/)?plugins\/\S*)$/,
    what: "no request to chatgpt.com for the lists of models and plugins",
    because: "Codex asks there for its built-in provider only, and has a list of its own",
  },
  {
    tools: ["codex"],
    part: /^(?:request GET \/backend-api\/codex\/responses|header x-openai-account-routing-override|body input\[\]\.(?:type|reasoning\.effort))$/,
    what: "with a ChatGPT login: no WebSocket, no `x-openai-account-routing-override`, and one more item in `input`, which repeats the effort",
    because:
      "the gateway passes on no login over a WebSocket, and Codex adds the field for its built-in provider only",
  },
  {
    tools: ["pi"],
    part: /^(?:beta message-threads\S*|body thread\S*)$/,
    what: "no message threads: each request has the conversation in full",
    because: "pi uses them at Anthropic's own address only",
  },
  {
    tools: ["opencode"],
    part: /^(?:small model|body model|request POST \/v1beta\/models\/gemini-\S*flash\S*:streamGenerateContent)$/,
    what: "titles and summaries may be made by another small model",
    because: "opencode chooses among the models that the gateway lists",
  },
];
