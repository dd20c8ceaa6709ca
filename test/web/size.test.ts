// The page is small, begins to paint at once, and asks nobody but the gateway.

import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { gunzipSync } from "node:zlib";
import { type DemoUpstream, startDemoUpstream } from "../harness/upstreams/demo-upstream.ts";
import { bundlePage } from "../../src/web/bundle.ts";
import { CREDENTIAL, type InsideGateway, makeConfig, startGatewayHere } from "../harness/gateway.ts";
import { visit } from "./visitor.ts";

setDefaultTimeout(60_000);
const MAX_COMPRESSED_BYTES = 150_000;

let upstream: DemoUpstream;
let gateway: InsideGateway;
beforeAll(() => {
  upstream = startDemoUpstream({ credential: CREDENTIAL });
  gateway = startGatewayHere({ config: makeConfig(upstream), console: true });
});
afterAll(async () => {
  await gateway.stop();
  upstream.stop();
});

test("everything together is at most 150 KB compressed", async () => {
  const fields = { "accept-encoding": "gzip, br" };
  const page = await visit(gateway, "/console", { fields });
  const assets = [...page.text.matchAll(/(?:src|href)="([^"]+)"/g)].map(([, path = ""]) => path);
  expect(assets).toHaveLength(4);
  let size = page.body.length;
  for (const path of assets) {
    const asset = await visit(gateway, path, { fields });
    expect([path, asset.status, asset.field("content-encoding")]).toEqual([path, 200, "gzip"]);
    expect(asset.field("cache-control")).toContain("immutable");
    const plain = await visit(gateway, path);
    expect(plain.field("content-encoding")).toBeUndefined();
    expect(plain.body).toEqual(gunzipSync(asset.body));
    size += asset.body.length;
  }
  expect(size).toBeGreaterThan(10_000);
  expect(size).toBeLessThan(MAX_COMPRESSED_BYTES);
});

test("neither script nor style names an address of another host", () => {
  const { script, style } = bundlePage();
  const text = [script, style]
    .map(({ gzip }) => gunzipSync(Buffer.from(gzip, "base64")).toString())
    .join("\n");
  const addresses = text.match(/(?:https?:)?\/\/[\w.-]+\.\w+/g) ?? [];
  // Names of XML, which nobody requests.
  expect(addresses.filter((address) => !address.endsWith("//www.w3.org"))).toEqual([]);
  expect(text).not.toMatch(/\beval\(|new Function\(/);
});

test("a missing asset is a 404 and not the page", async () => {
  expect((await visit(gateway, "/console/assets/0000.js")).status).toBe(404);
});
