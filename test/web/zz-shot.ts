// usage: bun shot.ts URL_LINK outprefix path...
import { chromium } from "playwright-core";
const [link, prefix, scheme = "light", ...paths] = process.argv.slice(2);
const b = await chromium.launch({ executablePath: "/usr/bin/chromium", args: ["--no-sandbox"] });
const ctx = await b.newContext({ colorScheme: scheme as "light", viewport: { width: 1280, height: 860 } });
const p = await ctx.newPage();
p.on("console", (m) => console.log("console:", m.type(), m.text()));
p.on("pageerror", (e) => console.log("pageerror:", e.message));
await p.goto(link!); await p.waitForSelector("nav");
const base = new URL(link!).origin;
for (const path of paths) for (const [w, h] of [[1280, 860], [390, 844], [2560, 1300]] as const) {
  await p.setViewportSize({ width: w, height: h });
  await p.goto(base + "/console" + path); await p.waitForTimeout(2500);
  await p.screenshot({ path: `${prefix}${path.replace(/\W+/g, "_")}_${w}.png`, fullPage: w < 500 });
}
await b.close();
