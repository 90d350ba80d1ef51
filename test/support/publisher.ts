/** Publishes events without a pause, to find requests that fail during a restart. */
import { Agent, request } from 'undici';
import type { Balancer } from './balancer.ts';
import { ADMIN_KEY } from './posthorn.ts';

/** How many requests are under way at a time. */
export const CONNECTIONS = 20;

export interface PublishResult {
  readonly sent: number;
  readonly failures: readonly string[];
}

export interface Publisher {
  stop(): Promise<PublishResult>;
}

/** Publishes with undici, one request at a time per connection. Calls `onAccepted` with the id of each event. */
export function publishWithUndici({ url }: Balancer, onAccepted: (id: string) => void = () => {}): Publisher {
  const agent = new Agent({ connections: CONNECTIONS, pipelining: 1 });
  let stopping = false;
  let sent = 0;
  const failures: string[] = [];
  const publish = async (): Promise<void> => {
    while (!stopping) {
      try {
        const { statusCode, body } = await request(`${url}/v1/events`, {
          dispatcher: agent,
          method: 'POST',
          headers: { authorization: `Bearer ${ADMIN_KEY}`, 'content-type': 'application/json' },
          body: JSON.stringify({ type: 'a.undici', tenant: 'a', data: {} }),
        });
        const text = await body.text();
        if (statusCode === 202) {
          sent += 1;
          onAccepted((JSON.parse(text) as { id: string }).id);
        } else failures.push(String(statusCode));
      } catch (error) {
        failures.push(String(error));
      }
    }
  };
  const publishing = Promise.all(Array.from({ length: CONNECTIONS }, publish));
  return {
    async stop() {
      stopping = true;
      await publishing;
      await agent.close();
      return { sent, failures };
    },
  };
}
