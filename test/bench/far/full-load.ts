// Full load on an upstream with TLS: requests/s, the delay of events, CPU. nginx is in front of the benchmark's upstream and
// speaks TLS. The gateway and another nginx are its clients.

import { writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Bench, Sample } from "../bench.ts";
import { findFreePort, type Folder, makeFolder, start } from "../machine.ts";
import { type Results } from "../results/measures.ts";
import { findScenario } from "../parts/scenarios.ts";
import { findNginx, planGateway, planNginx, type Target, waitForPort } from "../targets/targets.ts";
import { type Certificate, makeCertificate } from "./certificate.ts";
import type { FarPlan } from "./far.ts";

const MEASURED = ["throughput-64", "paced-streams"];

export async function measureTls({ commands, note }: FarPlan, bench: Bench, results: Results): Promise<void> {
  const folder = makeFolder();
  const certificate = makeCertificate(folder);
  const nginx = findNginx();
  const direct = planNginx(bench.cores, certificate?.cert);
  if (certificate === null || nginx === null || direct === null) {
    results.notes.push("TLS at full load was not measured: openssl or nginx is missing.");
    return;
  }
  const port = findFreePort();
  const file = writeFront(folder, port, bench.upstream.port, certificate);
  const command = [nginx, "-p", folder.path, "-c", file, "-e", "stderr"];
  const front = start(command, { core: bench.cores?.upstream ?? null });
  await waitForPort(port, front);
  const gateways = Object.entries(commands).map(([name, each]) =>
    planGateway(name, each, bench.cores, certificate.cert),
  );
  const targets: Target[] = [];
  for (const recipe of [direct, ...gateways]) targets.push(await recipe.start(port));
  for (let round = 0; round <= bench.rounds; round += 1) {
    note(`tls ${round}/${bench.rounds}`);
    for (const target of targets) {
      const sample = await measureAll(target, bench);
      if (round > 0) results.add(target.name, sample); // the first one warms up
    }
  }
  for (const target of targets) await target.stop();
  await front.stop();
  folder.remove();
}

async function measureAll(target: Target, bench: Bench): Promise<Sample> {
  const sample: Record<string, number> = {};
  for (const name of MEASURED) {
    for (const [metric, value] of Object.entries(await findScenario(name).run(target, bench)))
      sample[`TLS: ${metric}`] = value;
  }
  return sample;
}

function writeFront(
  { path }: Folder,
  port: number,
  upstreamPort: number,
  { cert, key }: Certificate,
): string {
  const file = join(path, "front.conf");
  const temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"];
  writeFileSync(
    file,
    `daemon off;
master_process off;
worker_processes 1;
pid ${path}/front.pid;
error_log stderr error;
events { worker_connections 8192; }
http {
  access_log off;
  ${temporary.map((name) => `${name}_temp_path ${path}/front-${name};`).join(" ")}
  keepalive_requests 1000000000;
  client_max_body_size 64m;
  upstream bench { server 127.0.0.1:${upstreamPort}; keepalive 1024; keepalive_requests 1000000000; }
  server {
    listen 127.0.0.1:${port} ssl backlog=4096;
    ssl_certificate ${cert};
    ssl_certificate_key ${key};
    ssl_session_cache shared:tls:1m;
    location / {
      proxy_pass http://bench;
      proxy_http_version 1.1;
      proxy_set_header Connection "";
      proxy_buffering off;
      proxy_request_buffering off;
    }
  }
}
`,
  );
  return file;
}
