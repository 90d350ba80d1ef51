/**
 * The cost of checking payloads: the throughput of a tenant in mode `strict`, with a schema for each event type, compared with
 * a tenant in mode `off` in turns on the same server.
 */
import { median, registerEndpoints, runLoad, startPosthorn, waitUntilSettled } from '../harness.ts';
import type { Bench } from '../scenario.ts';

const SCHEMA = {
  type: 'object',
  required: ['sent', 'filler'],
  properties: {
    sent: { type: 'number', minimum: 0 },
    filler: { type: 'string', maxLength: 1_000 },
    note: { type: ['string', 'null'], format: 'email' },
  },
  additionalProperties: false,
};

export const validation: Bench = {
  name: 'validation',
  async run({ postgres, receiver, runs, quick, onProgress }) {
    const posthorn = await startPosthorn(postgres, {}, ['--processes', '2']);
    try {
      const events = quick ? 2_000 : 30_000;
      const measureRate = async (tenant: string, types: Awaited<ReturnType<typeof registerEndpoints>>) => {
        const before = await receiver.count();
        const load = await runLoad(posthorn, { events, types, tenant, batch: 1, connections: 128 });
        if (load.rejected > 0) throw new Error(`${load.rejected} events were rejected`);
        await waitUntilSettled(postgres, 60);
        const seconds = (performance.timeOrigin + performance.now() - load.startedAt) / 1000;
        return ((await receiver.count()) - before) / seconds;
      };
      const off = await registerEndpoints(posthorn, receiver, { count: 50, fan: 1, tenant: 'valoff' });
      const strict = await registerEndpoints(posthorn, receiver, { count: 50, fan: 1, tenant: 'valstrict' });
      for (const type of strict)
        await posthorn.api('PUT', `/v1/event-types/${type}/versions/v1`, { schema: SCHEMA });
      await posthorn.api('PUT', '/v1/tenants/valstrict', { validation: 'strict' });
      onProgress('warm-up');
      await measureRate('valoff', off);
      await measureRate('valstrict', strict);
      const rates = { off: [] as number[], strict: [] as number[] };
      for (let run = 1; run <= runs; run += 1) {
        onProgress(`run ${run}`);
        rates.off.push(await measureRate('valoff', off));
        rates.strict.push(await measureRate('valstrict', strict));
      }
      const ratios = rates.strict.map((rate, run) => rate / rates.off[run]!);
      return [
        { name: 'validation off: per second', value: median(rates.off), unit: '/s' },
        { name: 'validation strict: per second', value: median(rates.strict), unit: '/s' },
        {
          name: 'validation strict: ratio to off',
          value: median(ratios),
          unit: '×',
          id: 'validation_ratio',
          goal: { atLeast: 0.85 },
        },
      ];
    } finally {
      await posthorn.stop();
    }
  },
};
