/**
 * The cost of checking payloads. Three tenants take turns on the same server: one whose event types are not in the catalogue,
 * one whose types have a schema and mode `off`, and one whose types have a schema and mode `strict`. Each has event types of
 * its own, because the catalogue belongs to all tenants.
 */
import {
  median,
  type Posthorn,
  type Receiver,
  registerEndpoints,
  runLoad,
  startPosthorn,
  waitUntilSettled,
} from '../harness.ts';
import type { Bench } from '../scenario.ts';

/** The bytes of `data` in every event. */
const PAYLOAD_BYTES = 300;

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

/** A tenant, its event types, and the rates that were measured. */
interface Series {
  readonly tenant: string;
  readonly types: string[];
  readonly rates: number[];
}

export const validation: Bench = {
  name: 'validation',
  async run({ postgres, receiver, runs, quick, onProgress }) {
    const posthorn = await startPosthorn(postgres, {}, ['--processes', '2']);
    const events = quick ? 2_000 : 30_000;
    const measure = async ({ tenant, types, rates }: Series): Promise<void> => {
      const before = await receiver.count();
      const load = await runLoad(posthorn, {
        events,
        types,
        tenant,
        batch: 1,
        connections: 128,
        bytes: PAYLOAD_BYTES,
      });
      if (load.rejected > 0) throw new Error(`${load.rejected} events were rejected`);
      await waitUntilSettled(postgres, 60);
      const seconds = (performance.timeOrigin + performance.now() - load.startedAt) / 1000;
      rates.push(((await receiver.count()) - before) / seconds);
    };
    try {
      const none = await createSeries(posthorn, receiver, 'none');
      const off = await createSeries(posthorn, receiver, 'off');
      const strict = await createSeries(posthorn, receiver, 'strict');
      const series = [none, off, strict];
      onProgress('warm-up');
      for (const each of series) await measure(each);
      await assertChecks(posthorn, series);
      await waitUntilSettled(postgres, 60);
      for (const each of series) each.rates.length = 0;
      for (let run = 0; run < runs; run += 1) {
        onProgress(`run ${run + 1}`);
        // Each round begins with another series, because the first one after a pause is slower.
        for (let turn = 0; turn < series.length; turn += 1)
          await measure(series[(run + turn) % series.length]!);
      }
      const ratioOf = ({ rates }: Series): number =>
        median(rates.map((rate, run) => rate / none.rates[run]!));
      return [
        { name: 'no catalogue: per second', value: median(none.rates), unit: '/s' },
        { name: 'validation off: per second', value: median(off.rates), unit: '/s' },
        { name: 'validation strict: per second', value: median(strict.rates), unit: '/s' },
        {
          name: 'validation off: ratio to no catalogue',
          value: ratioOf(off),
          unit: '×',
          id: 'validation_off_ratio',
          goal: { atLeast: 0.97 },
          limit: { atLeast: 0.95 },
        },
        {
          name: 'validation strict: ratio to no catalogue',
          value: ratioOf(strict),
          unit: '×',
          id: 'validation_strict_ratio',
          goal: { atLeast: 0.85 },
          limit: { atLeast: 0.85 },
        },
      ];
    } finally {
      await posthorn.stop();
    }
  },
};

/** Creates the endpoints of a tenant. Unless it is `none`, its event types get a schema and the tenant the mode. */
async function createSeries(
  posthorn: Posthorn,
  receiver: Receiver,
  mode: 'none' | 'off' | 'strict',
): Promise<Series> {
  const tenant = `validation-${mode}`;
  const types = await registerEndpoints(posthorn, receiver, {
    count: 50,
    tenant,
    typePrefix: `bench.${mode}`,
  });
  if (mode !== 'none') {
    for (const type of types)
      await posthorn.api('PUT', `/v1/event-types/${type}/versions/v1`, { schema: SCHEMA });
    await posthorn.api('PUT', `/v1/tenants/${tenant}`, { validation: mode });
  }
  return { tenant, types, rates: [] };
}

/** Throws unless exactly `strict` refuses an invalid payload: otherwise the series would measure the same thing. */
async function assertChecks(posthorn: Posthorn, series: readonly Series[]): Promise<void> {
  for (const { tenant, types } of series) {
    const isRefused = await posthorn
      .api('POST', '/v1/events', { tenant, type: types[0], data: { sent: 'never' } })
      .then(() => false)
      .catch((error: Error) => {
        if (!error.message.includes('payload_invalid')) throw error;
        return true;
      });
    if (isRefused !== (tenant === 'validation-strict'))
      throw new Error(`${tenant}: an invalid payload was ${isRefused ? 'refused' : 'accepted'}`);
  }
}
