// Loaded before all tests (bunfig.toml): what a machine has set for its people's own tools must not
// leak into the tests, nor into what they start. A proxy would take requests to loopback, too.

const NOT_OURS =
  /^(?:\w*_proxy|(?:anthropic|claude|codex|gateway|gemini|google|openai)_(?!test_)\w+|(?:force|no)_color|xdg_\w+)$/i;

for (const name of Object.keys(process.env)) if (NOT_OURS.test(name)) delete process.env[name];
