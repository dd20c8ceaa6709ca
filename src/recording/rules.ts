// Lists the meaningless differences between two runs of one script.
// A tool with other forms of times or ids needs a rule here, and no other code.

/** Texts of these forms count as equal. The first rule that fits wins.
 *  Backslashes were replaced by `/` before. */
export const VOLATILE_TEXTS: readonly RegExp[] = [
  // Claude Code's checksum of the request.
  /\b(?:cch|cc_version)=[\w.-]+/g,
  // The temporary home of `gateway run`.
  /\bgateway-run-\w+/g,
  // Ids.
  /[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}/gi,
  /\b(?:toolu|call|msg|resp|req|rs|fc|sess|session|chatcmpl|item|run|turn)[_-][A-Za-z0-9_-]{8,}/g,
  /\b[0-9a-f]{16,64}\b/g,
  // Clocks.
  /\b\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?(?: ?Z|[+-]\d\d:?\d\d)?)?/g,
  /\b(?:(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day,? )?(?:January|February|March|April|May|June|July|August|September|October|November|December) \d{1,2},? \d{4}\b/g,
  /\b\d{1,2}\/\d{1,2}\/\d{4}\b/g,
  /\b\d{1,2}:\d\d(?::\d\d(?:\.\d+)?)?(?: ?[AP]M)?\b/g,
  /\b1[6-9]\d{8}(?:\d{3}|\.\d+)?\b/g,
  // Durations.
  /\b(?:duration|elapsed)(?:_ms|_s)?: ?\d+(?:\.\d+)?/g,
  /\b\d+(?:\.\d+)? ?(?:ms|milliseconds|seconds|secs|s|minutes|min)\b/g,
  // Folders of one run, user or machine.
  // Claude Code names a project by its folder.
  /(?:\.claude\/projects|\/claude-\d+|\/Temp\/claude)\/[\w-]+/g,
  /(?:\/private)?\/(?:tmp|var\/folders\/\w+\/\w+\/T)\/[\w.-]+/g,
  /(?:\b[A-Za-z]:)?\/(?:home|Users)\/[\w.-]+|\/root\b/g,
  // The kernel's name and version.
  /\bOS Version: [^\n]*/g,
];

/** Matches a folder's name. A text with more than two blanks is taken for a sentence.
 *  `others` has more characters that may not be in the name. */
function writeName(others = ""): string {
  const word = String.raw`[^\s\\/\x60"<>${others}]{1,100}`;
  return `${word}(?: ${word}){0,2}`;
}

/** A folder ends where its line or quotation ends. */
const FOLDER = String.raw`(?:[A-Za-z]:)?(?:\/${writeName()}){1,20}(?=[\x60"<\\])`;
const HOME_NAME = writeName(String.raw`'()[\],:;`);

/** Rules for the agent's working folder or home, whose name may differ. */
export const OWN_FOLDERS: readonly RegExp[] = [
  String.raw`((?:\b[A-Za-z]:)?(?:\/${HOME_NAME}){1,12})\/\.(?:claude|codex|gemini|config|cache|local)\b`,
  String.raw`(?:working directory|current directory|working in the directory)(?: is)?: ?\x60?(${FOLDER}|[^\s\x60<"\\]{2,})`,
  String.raw`<cwd>(${FOLDER})`,
  // Gemini CLI lists folders in the text of a body.
  String.raw`Workspace Directories:\*\*\\n +- (${FOLDER})`,
].map((rule) => new RegExp(rule, "gi"));

export const VOLATILE_MEMBERS: readonly RegExp[] = [
  /(?:^|_)(?:duration|elapsed|timestamp|created|created_at|started_at)(?:_ms|_s)?$/,
  /^(?:user_id|session_id|prompt_cache_key|user_prompt_id|safety_identifier|client_metadata|installation_id)$/,
];
