/** Calls with a fee of their own. */
export const CALL_KINDS = [
  "web_search",
  "web_search_preview",
  "x_search",
  "x_posts",
  "x_users",
  "document_search",
  "file_search",
  "code_interpreter",
  "hosted_shell",
  "image_generation",
  "google_search",
  "google_search_prompt",
  "maps_grounding",
  // The whole request, if the answer reports no tokens.
  "call",
] as const;
