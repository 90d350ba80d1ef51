/**
 * An event storm: 10,000 events for 100 endpoints, in one second or as fast as the machine can. How long it takes until the healthy 99 are done while one
 * endpoint answers after ten seconds, compared with a storm in which all are healthy.
 */
import {
  median,
  type Postgres,
  type Receiver,
  registerEndpoints,
  runLoad,
  startPosthorn,
  waitUntilSettledExcept,
} from '../harness.ts';
import type { Bench } from '../scenario.ts';

const ENDPOINTS = 100;
/** On a busy machine Posthorn would reject a part of the storm, and storms of different sizes cannot be compared. */
const ACCEPT_ALL = { POSTHORN_SHED_LOOP_DELAY_MS: '0', POSTHORN_SHED_COMMIT_MS: '0' };

export const storm: Bench = {
  name: 'storm',
  async run({ postgres, receiver, quick, onProgress }) {
    const rounds = quick ? 1 : 5;
    const alone: number[] = [];
    const besideSlow: number[] = [];
    // The two alternate, so that other work on the machine affects both.
    for (let round = 1; round <= rounds; round += 1) {
      onProgress(`round ${round} of ${rounds}`);
      alone.push(await measure(postgres, receiver, `healthy-${round}`, false, quick));
      besideSlow.push(await measure(postgres, receiver, `slow-${round}`, true, quick));
    }
    return [
      { name: 'seconds until 99 endpoints are done, all healthy', value: median(alone), unit: 's' },
      { name: 'seconds until 99 endpoints are done, one slow', value: median(besideSlow), unit: 's' },
      {
        name: 'ratio',
        value: median(besideSlow) / median(alone),
        unit: '×',
        id: 'storm_ratio',
        goal: { atMost: 1.2 },
      },
    ];
  },
};

async function measure(
  postgres: Postgres,
  receiver: Receiver,
  tenant: string,
  hasSlow: boolean,
  quick: boolean,
): Promise<number> {
  const events = quick ? 1_000 : 10_000;
  const posthorn = await startPosthorn(postgres, ACCEPT_ALL, [], [], 120);
  try {
    const path = (index: number) => (hasSlow && index === 0 ? '/slow/10000/0' : `/ok/${index}`);
    const types = await registerEndpoints(posthorn, receiver, { count: ENDPOINTS, tenant, path });
    // Warm-up, without the first endpoint.
    await runLoad(posthorn, { events: quick ? 500 : 5_000, types: types.slice(1), tenant });
    await waitUntilSettledExcept(postgres, null, 30);
    // The machine may need longer than a second for so many events. Both storms must have all of them.
    const load = await runLoad(posthorn, {
      events,
      rate: events,
      seconds: 120,
      types,
      tenant,
      connections: 128,
    });
    if (load.accepted !== events) throw new Error(`only ${load.accepted} of ${events} events were accepted`);
    const [first] = await postgres.query<{ id: string }>(
      'select id from posthorn.endpoints where tenant = $1 and url like $2',
      [tenant, '%/0'],
    );
    await waitUntilSettledExcept(postgres, first!.id, 120);
    return (performance.timeOrigin + performance.now() - load.startedAt) / 1000;
  } finally {
    await posthorn.stop();
    await postgres.query('truncate posthorn.queue');
  }
}
