// Writes whole answers of each dialect with the given usage.

export const writeMessage = (
  model: string,
  usage: string,
  more = '"stop_reason":"end_turn","content":[{"type":"text","text":"hi"}]',
) => `{"id":"msg","type":"message","role":"assistant","model":"${model}",${more},"usage":${usage}}`;
export const writeResponse = (
  model: string,
  usage: string,
  more = '"output":[{"type":"message","role":"assistant","content":[{"type":"output_text","text":"hi"}]}]',
  top = "",
) =>
  `{"id":"resp_1","object":"response","status":"completed","model":"${model}",${more},"usage":${usage}${top}}`;
export const writeContent = (model: string, usage: string, more = "") =>
  `{"candidates":[{"content":{"parts":[{"text":"hi"}],"role":"model"},"finishReason":"STOP"${more}}],"modelVersion":"${model}","usageMetadata":${usage}}`;
export const writeChat = (model: string, usage: string) =>
  `{"id":"c","object":"chat.completion","model":"${model}","choices":[{"index":0,"message":{"role":"assistant","content":"hi"},"finish_reason":"stop"}],"usage":${usage}}`;

export const responsesUsage = (i: number, o: number, more = "", det = "") =>
  `{"input_tokens":${i}${det},"output_tokens":${o},"total_tokens":${i + o}${more}}`;
