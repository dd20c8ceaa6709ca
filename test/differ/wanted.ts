// The differences between 0.2.0 and this version that are wanted. Each has its reason; an entry without a difference is reported.

import type { Difference } from "./compare.ts";

export interface Wanted {
  readonly why: string;
  readonly where: RegExp;
  /** If given, the old side's value has to match `old`, and the new side's value `new`. */
  readonly old?: RegExp;
  readonly new?: RegExp;
}

/** The scenarios in which Chat Completions requests go to channels that speak Responses. */
const CHAT_ON_RESPONSES = String.raw`^traffic/(?:(?:over-|access-|aliases-)?bridged|chat-by-responses|rec-chat-to-responses|rec-responses-for-chat)`;
/** The scenarios in which a request and its answer are converted. */
const CONVERTED = String.raw`^traffic/(?:rec-\w+-(?:for|to)|\w+-by)-\w+`;

const within = (scenarios: string, place: string): RegExp => new RegExp(`(?:${scenarios})[^/]*/${place}`);

const WANTED: readonly Wanted[] = [
  {
    why: "P76: every answer to a messages client has request-id",
    where: /^traffic\/.*\/client\/field\/request-id$/,
    old: /^\(absent\)$/,
  },
  {
    why: "no answer waits for its bill, so none names its charge",
    where: /^traffic\/.*\/client\/field\/x-gateway-charge$/,
    new: /^\(absent\)$/,
  },
  { why: "another version has another page", where: /^traffic\/own-paths\.\d+\/client\/body(?:\.version)?$/ },
  {
    why: "the price book is a newer one",
    where: /\.(?:price_sources?(?:\[\d+\])?|book|date)$/,
    old: /2026-11-23/,
    new: /2026-11-28/,
  },
  {
    why: "`prices show` says until when a price counts, and on the workdays of which country",
    where: /^ledgers\/.*\/prices show .*\.(?:until|workdays|weekend_utc_offset)$/,
    old: /^(?:\(absent\)|null)$/,
  },
  {
    why: "`ledger show` has each amount with its price, and the hash of the line, as the page's drawer",
    where: /^ledgers\/.*[/ ]ledger show .*\.(?:sha256|passes)$/,
    old: /^\(absent\)$/,
  },
  {
    why: "the end of a ledger is known only if 0.2 or newer has noted it",
    where: /^ledgers\/(?:0\.1\.\d\/)?ledger verify.*\.notes(?:\.length|\[0\])$/,
  },
  {
    why: "a miss says that the first tool is new or gone",
    where: /\.(?:cache|causes\[\d+\])\.detail$/,
    old: /^\(absent\)$/,
    new: /^"(?:added|removed)"$/,
  },
  {
    why: "the error of same_call is shorter",
    where: /^traffic\/limit-same-call\.\d+\/client\/body\.error\.message$/,
    new: /Give the agent a new instruction\."$/,
  },
  {
    why: "P144: a line has the tool's version",
    where: /^traffic\/.*\/line\/\d+:\.client\.version$/,
    old: /^\(absent\)$/,
  },
  {
    why: "P189: an answer loses the key of its own request",
    where: /^traffic\/redaction\.\d+\/client\/(?:field\/x-echo|body\.content\[0\]\.text)$/,
    old: /^"?sk-/,
    new: /^(?:\(absent\)|"\*+")$/,
  },
  {
    why: "a request without its list of messages is named as one of a wrong type",
    where: /^traffic\/wrong-(?:responses|bridged)\.\d+\/client\/body\.error\.message$/,
    old: /^"Missing required parameter: 'messages'\."$/,
  },
  {
    why: "what a channel has charged, and a plan paid, today is the ledger's, also without a running gateway",
    where: /^l(?:edgers|ive)\/.*\[[^\]]+\]\.(?:charge|paid_by_plan)_today_usd$/,
  },
  {
    why: "sums and counts that follow from the lines of converted requests",
    where:
      /^live\/.*(?:\[(?:over-)?bridged.*|\[\w+-by-.*|\[rec-\w+-(?:for|to)-.*|by_key\..*|spend\.today_usd|totals\..*|cache today\.document\.requests)$/,
  },
  {
    why: "without usage, the output of a stream of more than 8 KB is estimated from a sample",
    where:
      /^(?:traffic\/rec-chat[\w-]*\.\d+-openai-chat-openllmetry--test-azure-test-chat-(?:async-)?streaming-.*|live\/keys list\.document\[rec-chat-\d+\]\.spent_\w+_usd)$/,
  },
  {
    why: "without usage, the output of a stream of more than 2 KB is estimated from a sample",
    where:
      /^traffic\/rec-(?:chat-\d+\.\d+-openai-chat-(?:dd-trace-py--completion-stream-multiple-choices-exclude-usage|elastic-otel--test-chat-stream-with-parallel-tools-and-capture-message-content|envoy-ai-gateway--chat-streaming-web-search|openllmetry--test-functions-test-open-ai-function-calls-tools-streaming-parallel-[01]|spliced--usage-missing-0)|responses[\w-]*-\d+\.\d+-openai-responses-(?:dd-trace-py--v1-response-stream-incomplete|spliced--error-flat-0)|content[\w-]*-\d+\.\d+-gemini-vercel-ai--google-stream-tool-call-array-arguments-missing-terminal-function-call)\/line\/1:\.(?:usage\.output|official_usd|charge_usd|limit_usd)$/,
  },
  {
    why: "a model without a price is charged what its answer names",
    where:
      /^(?:traffic\/rec-(?:responses-\d+\.\d+-openai-responses-pydantic-ai--test-openai-responses-raw-cot-stream-openrouter|chat-\d+\.\d+-openai-chat-(?:dd-trace-py--completion-openrouter|llm--test-tools-streaming-variant-d-0))\/(?:client\/field\/x-gateway-charge|line\/1:\.(?:basis|price_source|official_usd|charge_usd|unpriced_because|tariff.*))|live\/keys list\.document\[rec-responses-\d+\]\.spent_\w+_usd)$/,
  },
  {
    why: "an answer without a text, such as that of a background request, is estimated without its blanks",
    where:
      /^traffic\/rec-responses[\w-]*\.\d+-openai-responses-pydantic-ai--.*-background-mode-.*\/line\/1:\.limit_usd$/,
  },
  {
    why: "limits count the text of a whole answer, too, where it is more than was reported and there is no price",
    where: /^traffic\/bill-messages\.2\/line\/1:\.limit_usd$/,
  },
  {
    why: "a part that is larger than its total counts nothing: its tokens are ordinary ones",
    where:
      /^(?:traffic\/(?:bill-responses\.[12]\/|rec-chat[\w-]*\.\d+-openai-chat-fantasy--testvercelthinking-.*)(?:line\/1:\.|client\/body\.usage)|live\/keys list\.document\[bill-responses\]\.spent_)/,
  },
  {
    why: "the page is not an app to install",
    where: /^traffic\/own-paths\.\d+\/client\/field\/content-security-policy$/,
    old: /manifest-src/,
  },
  {
    why: "a message of an unknown type, and a body in an unknown encoding, are refused in other words",
    where: /^traffic\/(?:socket-odd-2\/messages\[0\]|bodies\.5\/client\/body\.error\.message)$/,
    new: /of this type|is encoded as/,
  },
  {
    why: "the refusal of a model without a price says in other words what to add",
    where: /^traffic\/(?:socket-unpriced\/messages\[0\]|limit-unpriced\.1\/client\/body\.error\.message)$/,
    new: /or add `unpriced: allow`/,
  },
  {
    why: "the refusal of a path says in other words which groups have it",
    where: /^traffic\/more-responses\.[34]\/client\/body\.error\.message$/,
    new: /groups whose channels are all at/,
  },
  {
    why: "limits do not count earlier attempts that the upstream may charge",
    where: /^traffic\/over-[\w-]+-(?:empty|closes)\.1\/line\/1:\.limit_usd$/,
    new: /^\(absent\)$/,
  },
  {
    why: "P189: a credential in an error's text is stars, as elsewhere",
    where: /^traffic\/redaction\.[67]\/client\/body\.error\.message$/,
    new: /\*{12}/,
  },
  {
    why: "without usage, the arguments of a call count without the blanks between them",
    where:
      /^traffic\/rec-content[\w-]*\.\d+-gemini-(?:vertexai-test-data--vertexai-unary-success-function-call-|crewai--test-gemma3-).*(?:usage\.|\.limit_usd)/,
  },
  // Conversions from Chat Completions to Responses now use the neutral form, as all other conversions do.
  {
    why: "P162: Chat Completions on a Responses channel is a conversion and says so",
    where: within(CHAT_ON_RESPONSES, "(?:client/field/x-gateway-converted|line/1:.converted)$"),
    old: /^\(absent\)$/,
  },
  {
    why: "an empty description of a tool is left out",
    where: within(CONVERTED, String.raw`upstream/1/body\.tools\[[^\]]+\]\.description$`),
    old: /^""$/,
  },
  {
    why: "the neutral form writes each text of a prompt as a part, and a key for the provider's cache",
    where: within(
      CHAT_ON_RESPONSES,
      String.raw`upstream/\d/body\.(?:input\[\d+\]\.content|prompt_cache_key)$`,
    ),
    new: /^\[\{"type":"(?:input|output)_text"|^"[0-9a-f]{32}"$/,
  },
  {
    why: "P88: an error about the request keeps its status in a conversion, whatever type its body names",
    where: /-s422\.1\/client\/(?:status|body\.error\.type)$/,
    new: /^422 |"invalid_request_error"/,
  },
  {
    why: "a body that is no answer is an error of the channel in every direction, with the same words",
    where: within(CHAT_ON_RESPONSES, "client/(?:status|body.error.message)$"),
    old: /^500 |^429 .*current quota|^"The upstream's answer has no output/,
    new: /^50[23] |^"The upstream closed the stream/,
  },
  {
    why: "a chat answer has no cache writes that the upstream has not reported, and a list of annotations",
    where: within(CONVERTED, String.raw`client/body.*\.(?:cache_write_tokens|message\.annotations)$`),
    old: /^(?:0|\(absent\))$/,
    new: /^(?:\[\]|\(absent\))$/,
  },
  {
    why: "a converted chat request is estimated by the bytes that its client sent",
    where: within(
      CHAT_ON_RESPONSES,
      String.raw`line/\d:\.(?:limit_usd|usage\.input|official_usd|charge_usd)$`,
    ),
  },
  {
    why: "a chat stream from Responses has its pieces in other events, the upstream's first tier, and reasoning in envelopes",
    where: within(
      String.raw`^traffic/rec-(?:responses|messages|content)-for-chat`,
      String.raw`client/body(?:\.length$|\[\d+\]|\.choices\[\d+\]\.message\.reasoning_)`,
    ),
  },
  {
    why: "a client sees the estimate where an upstream reports zeros",
    where: within(CONVERTED, String.raw`client/body.*(?:usage|usageMetadata)\.\w+$`),
    old: /^0$/,
    new: /^[1-9]\d*$/,
  },
  {
    why: "a refusal and a blocked answer are incomplete for a Responses client, as its own provider says it",
    where: within(
      String.raw`^traffic/rec-\w+-for-responses`,
      String.raw`client/body.*(?:\.status|\.incomplete_details|\.event|\.data\.type)$`,
    ),
    new: /incomplete|content_filter/,
  },
  {
    why: "requests of Gemini clients may have names in snake case at every level: more of them is read",
    where: within(String.raw`^traffic/rec-content-to-\w+`, String.raw`upstream/1/body\.`),
    old: /^\(absent\)$|^1$|^\{"type":"e(?:nabled|phemeral)"|^"required"$|^true$/,
  },
  {
    why: "nothing is left out of a Gemini client's request because it was written in snake case",
    where: within(String.raw`^traffic/rec-content-to-\w+`, "client/field/x-gateway-adjusted$"),
    old: /contents:function_|response_mime_type/,
    new: /^\(absent\)$|^generationConfig\.thinkingConfig$/,
  },
  {
    why: "x-gateway-adjusted names a field by its place in the client's request, and members of tools too",
    where: within(`${CONVERTED}|${CHAT_ON_RESPONSES}`, "client/field/x-gateway-adjusted$"),
    new: /\[\]\.|generationConfig\.|[a-z][A-Z]|temperature=1$/,
  },
  {
    why: "errors name a field by its place in the client's request, in one form of words; a broken upstream is server_error",
    where: within(
      `${CONVERTED}|${CHAT_ON_RESPONSES}`,
      String.raw`client/body(?:\[\d+\]\.data)?\.error\.(?:message|param|code|details.*)$`,
    ),
  },
  {
    why: "members of tools and messages that a dialect does not have are named or refused, and old functions are converted",
    where: within(String.raw`^traffic/rec-(?:chat|content)-to-\w+`, "client/status$"),
    old: /^400 .*function|^200 /,
    new: /^200 |^400 .*(?:web_search_options|fileUri|no sound and no film|no files of this kind)/,
  },
  {
    why: "a Responses upstream that fails before its first item gets an error status, and one with a text is complete",
    where: within(String.raw`^traffic/rec-responses-for-\w+`, "client/status$"),
    old: /^(?:200|502) /,
    new: /^(?:503 .*quota|200 )/,
  },
  {
    why: "an answer that only lacks the provider's last event is complete if its text says so, and searches are shown",
    where:
      /^traffic\/rec-(?:chat-for-\w+-80\.23-.*snowflake|content-for-\w+-\d+\.\d+-.*(?:tool|citations|search|grounding)|responses-for-messages-.*web-search).*\/(?:client\/body|line\/1:\.outcome)/,
  },
  {
    why: "old functions end with function_call or stop, as the provider's own answers do",
    where: within(
      String.raw`^traffic/rec-chat-to-\w+`,
      String.raw`client/body.*choices\[0\]\.finish_reason$`,
    ),
    old: /^"tool_calls"$/,
    new: /^"stop"$/,
  },
  {
    why: "a provider gets nothing that it refuses: ranges of the temperature, strict",
    where: within(CONVERTED, String.raw`upstream/1/body\.(?:temperature|tools\[[^\]]+\]\.function\.strict)$`),
  },
  {
    why: "the options of a converted request stand in the order of its dialect's table",
    where: within(CONVERTED, "upstream/1/body$"),
    old: /^(?:\{|…)/,
    new: /^(?:\{|…)/,
  },
  {
    why: "every event of a converted answer for a Gemini client has a part: Google's SDK forgets an answer without",
    where: within(
      String.raw`^traffic/(?:rec-content-to|rec-\w+-for-content|content-by-)`,
      String.raw`client/body(?:\[\d+\](?:\.data)?)?(?:\.candidates\[\d+\]\.content\.parts\.length|\.delta)$`,
    ),
    old: /^(?:0|null)$/,
    new: /^(?:1|"")$/,
  },
  {
    why: "an empty object as the answer of a Gemini channel is an error from the first event on",
    where: /^traffic\/chat-by-content-stream-other-json\.1\/client\/body/,
  },
  {
    why: "the gateway's own response.failed has its members in another order",
    where: /^traffic\/(?:over-|rec-)?responses-(?:stream|idle|\d).*\/client\/body$/,
    old: /iled","sequence_number"/,
    new: /iled","sequence_number"/,
  },
  {
    why: "P99, P101: a head that breaks off is not an answer. Another channel is tried, and the line says that two may have to be paid",
    where: /^(?:traffic|live)\/.*over-[\w-]+-half-head(?:\.\d\/|-\w\]|\])/,
  },
  {
    why: "P103: after a 404 that does not speak of a model, no other channel is tried",
    where: /^(?:traffic|live)\/.*over-[\w-]+-s404(?:\.\d\/|-\w\]|\])/,
  },
  // Since decision 0029, the runtime's server answers clients, in place of our own server.
  {
    why: "header fields that are repeated are joined by a comma",
    where: /^traffic\/fields-\w+\.1\/(?:client|upstream\/1)\/field\/(?:x-odd|anthropic-beta)$/,
    old: /\n/,
    new: /, /,
  },
  {
    why: "P62: a path is compared and forwarded in its normal form",
    where: /^traffic\/(?:path-messages|other-paths)\.\d+\/client\/status$/,
    old: /^404 .*\/\.\.?\//,
  },
  {
    why: "P62: requests for a path that is not in its normal form are served and charged",
    where: /^live\/.*\[path-messages(?:-a)?\]\.(?:requests_hour|spent_(?:today|total)_usd|charge_today_usd)$/,
  },
  {
    why: "the refusals of a path and of a foreign login have another order or other words",
    where: /^traffic\/.*\/client\/body\.error\.message$/,
    old: /With this key, call .*\. Groups that fit it: |does not look like one of it \(|Send the key in x-gateway-key, /,
    new: / group\. Groups that fit it: |which only .* may use, |Send in x-gateway-key a key /,
  },
  {
    why: "the note of a seller's missing amount says that the price book's amount counts",
    where: /^traffic\/bill-reported.*\/line\/.*\.suspect$/,
    old: /the seller named no amount for all of it: the price book's counts/,
    new: /the seller named no amount for the whole answer: the price book's amount counts/,
  },
  {
    why: "a whole answer without a content-type gets that of bytes from the runtime",
    where: /^traffic\/.*\/client\/field\/content-type$/,
    old: /^\(absent\)$/,
    new: /^application\/octet-stream$/,
  },
  {
    why: "a session has the tokens that its prompts missed in the cache",
    where: /^ledgers\/.*\/sessions.*\.missed$/,
    old: /^\(absent\)$/,
    new: /^\d+$/,
  },
  {
    why: "`ledger verify` says how many lines it did not check",
    where: /^ledgers\/.*[/ ]ledger verify.*\.unchecked$/,
    old: /^\(absent\)$/,
  },
  {
    why: "a note of `ledger verify` has one form for any number of lines",
    where: /^ledgers\/.*[/ ]ledger verify.*\.notes\[\d+\]$/,
    old: / ha(?:s|ve) the amount that the seller named/,
    new: /Lines with the amount that the seller named/,
  },
  {
    why: "the journal alone notes the end of the ledger",
    where: /^ledgers\/.*[/ ]ledger verify.*\.notes\[\d+\]$/,
    old: /The journal and the noted end are not beside/,
    new: /The journal is not next to/,
  },
  {
    why: "`top` says why a changed config is not in force",
    where: /^live\/top\.document\.config_problem$/,
  },
  {
    why: "usage compares with another model only",
    where: /^ledgers\/.*\/usage.*--as.*\.as\.(?:without_cache|tier)$/,
    new: /^\(absent\)$/,
  },
];

const SHOWN = 4;

/** Returns the kind of a place: the place without its scenario's name and without numbers. */
const kindOf = (where: string): string => where.replace(/^(\w+)\/[^/]*/, "$1").replaceAll(/\d+/g, "N");

/** Sorts differences into wanted and unexpected ones. */
export class Verdict {
  readonly #counts = WANTED.map(() => 0);
  unexpected = 0;

  /** Describes the unexpected differences among these. */
  add(differences: readonly Difference[]): string {
    const unexpected = differences.filter((difference) => {
      const index = WANTED.findIndex((each) => fits(each, difference));
      if (index >= 0) this.#counts[index]! += 1;
      return index < 0;
    });
    this.unexpected += unexpected.length;
    const lines: string[] = [];
    for (const [kind, list] of Map.groupBy(unexpected, ({ where }) => kindOf(where))) {
      lines.push(`${list.length} × ${kind}`);
      for (const { where, old, new: fresh } of list.slice(0, SHOWN))
        lines.push(`  ${where}`, `    - ${old}`, `    + ${fresh}`);
    }
    return lines.join("\n");
  }

  /** `isAll`: no traffic and no ledger was left out, so each entry of WANTED should have matched a difference. */
  conclude(isAll: boolean): string {
    const lines: string[] = [];
    for (const [index, { why }] of WANTED.entries())
      if (this.#counts[index]! > 0) lines.push(`wanted, ${this.#counts[index]} times: ${why}`);
      else if (isAll) lines.push(`this entry of wanted.ts matches nothing: ${why}`);
    return [...lines, `${this.unexpected} unexpected differences`].join("\n");
  }
}

function fits({ where, old = /^/, new: fresh = /^/ }: Wanted, difference: Difference): boolean {
  return where.test(difference.where) && old.test(difference.old) && fresh.test(difference.new);
}
