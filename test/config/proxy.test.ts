// Which proxy the environment sets for an upstream.

import { expect, test } from "bun:test";
import { findProxy } from "../../src/config/proxy.ts";

const ALL = { HTTPS_PROXY: "http://secure:1", HTTP_PROXY: "http://plain:2", ALL_PROXY: "http://all:3" };

test.each<[target: string, env: Record<string, string>, proxy: string | null]>([
  ["https://a.example", {}, null],
  ["https://a.example", ALL, "http://secure:1/"],
  ["http://a.example", ALL, "http://plain:2/"],
  ["https://a.example", { HTTP_PROXY: "http://plain:2" }, null],
  ["http://a.example", { ALL_PROXY: "http://all:3" }, "http://all:3/"],
  // Programs that read both spellings prefer the small one.
  ["https://a.example", { ...ALL, https_proxy: "http://small:4" }, "http://small:4/"],
  ["https://a.example", { ...ALL, https_proxy: "" }, "http://secure:1/"],
  ["https://a.example", { HTTPS_PROXY: "secure:1" }, "http://secure:1/"],
  ["https://a.example", { HTTPS_PROXY: "socks5://secure:1" }, null],
  // Never for this machine.
  ["http://localhost:8080", ALL, null],
  ["http://api.localhost", ALL, null],
  ["http://127.0.0.1:11434", ALL, null],
  ["http://127.1.2.3", ALL, null],
  ["http://[::1]:8080", ALL, null],
  ["http://128.0.0.1", ALL, "http://plain:2/"],
  ["http://127.0.0.1.example", ALL, "http://plain:2/"],
  // NO_PROXY
  ["https://a.example", { ...ALL, NO_PROXY: "*" }, null],
  ["https://a.example", { ...ALL, NO_PROXY: "b.example, a.example" }, null],
  ["https://a.example", { ...ALL, NO_PROXY: "b.example A.EXAMPLE" }, null],
  ["https://api.a.example", { ...ALL, NO_PROXY: "a.example" }, null],
  ["https://api.a.example", { ...ALL, NO_PROXY: ".a.example" }, null],
  ["https://api.a.example", { ...ALL, NO_PROXY: "*.a.example" }, null],
  ["https://not-a.example", { ...ALL, NO_PROXY: "a.example" }, "http://secure:1/"],
  ["https://a.example.org", { ...ALL, NO_PROXY: "a.example" }, "http://secure:1/"],
  ["https://a.example", { ...ALL, NO_PROXY: "", no_proxy: "a.example" }, null],
  ["https://a.example", { ...ALL, NO_PROXY: " , " }, "http://secure:1/"],
  // With a port, also with the usual one, which the address does not show.
  ["https://a.example", { ...ALL, NO_PROXY: "a.example:443" }, null],
  ["http://a.example", { ...ALL, NO_PROXY: "a.example:80" }, null],
  ["https://a.example", { ...ALL, NO_PROXY: "a.example:80" }, "http://secure:1/"],
  ["https://a.example:8443", { ...ALL, NO_PROXY: "a.example:8443" }, null],
  ["https://a.example:8443", { ...ALL, NO_PROXY: "a.example:443" }, "http://secure:1/"],
  ["https://a.example:8443", { ...ALL, NO_PROXY: "a.example" }, null],
])("%s with %o goes through %p", (target, env, proxy) => {
  expect(findProxy(new URL(target), env)?.href ?? null).toBe(proxy);
});
