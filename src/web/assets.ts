// The page's files: a shell without data, a script, a style sheet and an icon.

import { gunzipSync } from "node:zlib";
import type { Exchange } from "../lib/http/exchange.ts";
import type { Field } from "../lib/http/fields.ts";
import { type BundledFile, bundlePage } from "./bundle.ts" with { type: "macro" };
import { NOT_CACHED, SAFE_FIELDS } from "./guard.ts";

const PAGE = bundlePage();

interface Asset {
  readonly type: string;
  readonly gzip: Buffer;
}

const ICON = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32">
<rect width="32" height="32" rx="8" fill="#3a6df0"/>
<path d="M8 22V13a8 8 0 0 1 16 0v9M16 22v-8" fill="none" stroke="#fff" stroke-width="3" stroke-linecap="round"/>
</svg>`;

const SCRIPT = `/console/assets/${PAGE.script.hash}.js`;
const STYLE = `/console/assets/${PAGE.style.hash}.css`;

const assets: ReadonlyMap<string, Asset> = new Map([
  [SCRIPT, { type: "text/javascript; charset=utf-8", gzip: decode(PAGE.script) }],
  [STYLE, { type: "text/css; charset=utf-8", gzip: decode(PAGE.style) }],
  ["/console/assets/icon.svg", { type: "image/svg+xml", gzip: Buffer.from(Bun.gzipSync(ICON)) }],
]);

function decode({ gzip }: BundledFile): Buffer {
  return Buffer.from(gzip, "base64");
}

const SHELL = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Gateway</title>
<link rel="icon" href="/console/assets/icon.svg">
<link rel="stylesheet" href="${STYLE}">
<script type="module" src="${SCRIPT}"></script>
</head>
<body>
<div id="page"></div>
<noscript>This page needs JavaScript. The same is in the terminal: gateway usage, gateway top, gateway keys.</noscript>
</body>
</html>
`;

/** An asset's address changes with its content: browsers may keep it. */
const KEPT: Field = ["cache-control", "public, max-age=31536000, immutable"];

export function answerAsset(exchange: Exchange, path: string): boolean {
  const asset = assets.get(path);
  if (asset === undefined) return false;
  const fields: Field[] = [["content-type", asset.type], KEPT, ["vary", "accept-encoding"], ...SAFE_FIELDS];
  if (exchange.field("accept-encoding")?.includes("gzip") === true)
    exchange.answer(200, [...fields, ["content-encoding", "gzip"]], asset.gzip);
  else exchange.answer(200, fields, gunzipSync(asset.gzip));
  return true;
}

export function answerShell(exchange: Exchange): void {
  exchange.answer(200, [["content-type", "text/html; charset=utf-8"], NOT_CACHED, ...SAFE_FIELDS], SHELL);
}
