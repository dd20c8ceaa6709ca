// Starts and controls the two ends of every measurement: load.ts and upstream.ts.

import type { Outcome } from "./crowd.ts";
import type { Job } from "./load.ts";
import { type Cores, start } from "../machine.ts";

export interface Upstream {
  readonly port: number;
}

export async function startUpstream(cores: Cores | null): Promise<Upstream> {
  const child = start([process.execPath, `${import.meta.dir}/upstream.ts`], {
    core: cores?.upstream ?? null,
  });
  return { port: Number(await child.readLine()) };
}

export interface Load {
  /** One job at a time. */
  run(job: Job): Promise<Outcome>;
  stop(): Promise<void>;
}

export function startLoad(core: number | null): Load {
  const child = start([process.execPath, `${import.meta.dir}/load.ts`], { core });
  return {
    stop: () => child.stop(),
    async run(job) {
      void child.process.stdin.write(`${JSON.stringify(job)}\n`);
      await child.process.stdin.flush();
      const line = await child.readLine();
      if (line === null) throw new Error(`the load generator has ended: ${child.complaints()}`);
      return JSON.parse(line);
    },
  };
}
