/**
 * The least that a durable webhook costs with few clients: the processor time of a program that does only what a 202 needs
 * (`floor-pipeline.ts`) and of PostgreSQL. `cost` measures the same load with Posthorn. Compare them on the same
 * quiet machine: what the program costs, no implementation with a commit per event avoids.
 */
import { fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { measureBareLoop, median, type Posthorn, runLoad, waitForMessage } from '../harness.ts';
import { readPostmasterPid, readTreeSeconds } from '../process-figures.ts';
import type { Bench, Figure } from '../scenario.ts';

const PAYLOAD_BYTES = 300;
const CLIENTS = [2, 64] as const;
const EVENTS: Record<(typeof CLIENTS)[number], number> = { 2: 4_000, 64: 30_000 };

interface Cost {
  readonly programUs: number;
  readonly postgresUs: number;
  readonly ratio: number;
}

export const floor: Bench = {
  name: 'floor',
  async run({ postgres, receiver, runs, quick, onProgress }) {
    const program = fileURLToPath(new URL('../floor-pipeline.ts', import.meta.url));
    const child = fork(program, [postgres.url, String(receiver.port)]);
    const { port } = await waitForMessage<{ port: number }>(child, (message) => 'port' in message);
    const server: Pick<Posthorn, 'port' | 'key'> = { port, key: 'none' };
    const postmaster = await readPostmasterPid(postgres);
    const measure = async (clients: number, events: number): Promise<Cost> => {
      const bare = await measureBareLoop(receiver, 1, PAYLOAD_BYTES);
      const read = () => Promise.all([readTreeSeconds(child.pid!), readTreeSeconds(postmaster)]);
      const before = await read();
      const load = await runLoad(server, { connections: clients, events, bytes: PAYLOAD_BYTES });
      if (load.rejected > 0) throw new Error(`${load.rejected} events were rejected`);
      const after = await read();
      const [programUs, postgresUs] = after.map(
        (seconds, index) => ((seconds - before[index]!) * 1e6) / load.accepted,
      ) as [number, number];
      return { programUs, postgresUs, ratio: (programUs + postgresUs) / bare.cpuUsPerRequest };
    };
    try {
      // V8 needs about ten thousand events to optimize the program.
      await measure(64, 20_000);
      const figures: Figure[] = [];
      for (const clients of CLIENTS) {
        const costs: Cost[] = [];
        for (let round = 1; round <= runs; round += 1) {
          onProgress(`${clients} clients, round ${round} of ${runs}`);
          costs.push(await measure(clients, EVENTS[clients] / (quick ? 4 : 1)));
        }
        const medianOf = (pick: (cost: Cost) => number): number => median(costs.map(pick));
        const label = `${clients} clients`;
        figures.push(
          { name: `${label}: CPU of the program`, value: medianOf((cost) => cost.programUs), unit: 'µs' },
          { name: `${label}: CPU of PostgreSQL`, value: medianOf((cost) => cost.postgresUs), unit: 'µs' },
          { name: `${label}: CPU over the bare loop's`, value: medianOf((cost) => cost.ratio), unit: '×' },
        );
      }
      return figures;
    } finally {
      child.disconnect();
    }
  },
};
