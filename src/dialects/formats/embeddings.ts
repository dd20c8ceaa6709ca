// Embeddings of the responses platform: everything as in the responses dialect, but for their usage.

import type { Dialect } from "../dialect.ts";
import { openEmbeddingsMeter } from "../meters/embeddings.ts";
import { responses } from "./responses.ts";

export const embeddings: Dialect = { ...responses, openMeter: openEmbeddingsMeter };
