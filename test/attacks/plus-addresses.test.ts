/** Notices to `a+1@…`, `a+2@…` and so on, to flood one mailbox with confirmations through the operator's mail server. */
import { afterAll, expect, test } from 'vitest';
import { startMailServer } from '../support/mail-server.ts';
import { newTenant, usePosthorn } from '../support/posthorn.ts';

const mail = await startMailServer();
afterAll(() => mail.close());
const posthorn = usePosthorn({
  inProcess: true,
  env: { POSTHORN_SMTP_URL: mail.url, POSTHORN_SMTP_FROM: 'Posthorn <posthorn@sender.test>' },
});

test('one mailbox gets three confirmations, whatever stands behind a plus and whichever tenant asks', async () => {
  const addresses = ['victim@mail.test', 'VICTIM+0@mail.test', 'victim+a+b@mail.test'];
  for (let n = 1; n <= 9; n += 1) addresses.push(`victim+${n}@mail.test`);
  const statuses: number[] = [];
  for (const address of addresses) {
    const sentBefore = statuses.filter((status) => status === 201).length;
    const answer = await posthorn.api('POST', '/v1/notifiers', {
      kind: 'email',
      tenant: newTenant(),
      address,
    });
    statuses.push(answer.status);
    if (answer.status === 201) await mail.waitFor(1, address);
    else expect(sentBefore).toBe(3);
  }
  expect(statuses).toEqual([201, 201, 201, ...Array<number>(9).fill(429)]);
  expect(mail.messages.filter(({ to }) => to.join().toLowerCase().includes('victim'))).toHaveLength(3);
});
