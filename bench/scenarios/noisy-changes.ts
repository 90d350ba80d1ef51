/** A tenant changes one of its endpoints all the time. */
import { noisyBench, type Target } from '../noisy.ts';

const CONNECTIONS = 8;

const tenantOf = ({ run }: Target): string => `changes-${run}`;

async function call({ posthorn }: Target, method: string, path: string, body: object): Promise<unknown> {
  const response = await fetch(`http://127.0.0.1:${posthorn.port}${path}`, {
    method,
    headers: { authorization: `Bearer ${posthorn.key}`, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  return response.json();
}

const ids = new Map<string, string>();

export const noisyChanges = noisyBench({
  name: 'changes',
  beside: 'beside changes of an endpoint',
  async prepare(target) {
    const tenant = tenantOf(target);
    const endpoint = { url: 'http://127.0.0.1:9/', tenant, paused: true };
    const { id } = (await call(target, 'POST', '/v1/endpoints', endpoint)) as { id: string };
    ids.set(tenant, id);
  },
  async run(target, signal) {
    const path = `/v1/endpoints/${ids.get(tenantOf(target))}`;
    await Promise.all(
      Array.from({ length: CONNECTIONS }, async (_, connection) => {
        for (let n = connection; !signal.aborted; n += CONNECTIONS)
          await call(target, 'PATCH', path, { timeout_ms: 5_000 + (n % 20) });
      }),
    );
  },
});
