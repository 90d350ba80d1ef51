import { describe, expect, it } from 'vitest';
import type { Clock } from '../../domain/clock.ts';
import { DEFAULT_ANSWER, type Inbox, Inboxes, type InboxLimits } from './inboxes.ts';

function newInboxes(given: Partial<InboxLimits> = {}) {
  let now = 1_000_000;
  const clock: Clock = { now: () => now, monotonic: () => now, after: () => () => {} };
  const limits = {
    inboxes: 2,
    inboxesPerTenant: 2,
    requestsPerInbox: 3,
    bytesPerInbox: 1000,
    expiresAfterMs: 60_000,
    ...given,
  };
  return {
    inboxes: new Inboxes(clock, limits),
    pass: (ms: number) => {
      now += ms;
    },
  };
}

const request = (body: string) => ({
  method: 'POST',
  path: '/',
  headers: {},
  body: Buffer.from(body),
  signature: { verdict: 'unknown' as const, detail: '' },
  answered: DEFAULT_ANSWER,
});
const numbersIn = (inbox: Inbox) => inbox.requests.map(({ number }) => number);

describe('inboxes', () => {
  it('keep the newest requests, so many and so large', () => {
    const { inboxes } = newInboxes();
    const inbox = inboxes.create('acme', DEFAULT_ANSWER);
    for (let sent = 0; sent < 5; sent += 1) inboxes.keep(inbox, request('x'));
    expect(numbersIn(inbox)).toEqual([5, 4, 3]);
    inboxes.keep(inbox, request('y'.repeat(999)));
    expect(numbersIn(inbox)).toEqual([6]);
    inboxes.keep(inbox, request('z'.repeat(5000)));
    expect(inbox.requests).toMatchObject([{ number: 7, truncated: true }]);
    expect(inbox.requests[0]!.body).toHaveLength(1000);
    expect(inbox.received).toBe(7);
  });

  it('leave room for other tenants', () => {
    const { inboxes } = newInboxes({ inboxes: 3 });
    const [first] = [inboxes.create('acme', DEFAULT_ANSWER), inboxes.create('acme', DEFAULT_ANSWER)];
    expect(() => inboxes.create('acme', DEFAULT_ANSWER)).toThrow('The tenant has 2 inboxes already');
    inboxes.create('globex', DEFAULT_ANSWER);
    inboxes.delete(first!.token);
    inboxes.create('acme', DEFAULT_ANSWER);
  });

  it('are limited in number, and forgotten when nobody used them for a while', () => {
    const { inboxes, pass } = newInboxes();
    const first = inboxes.create('acme', DEFAULT_ANSWER);
    pass(40_000);
    const second = inboxes.create('globex', DEFAULT_ANSWER);
    expect(() => inboxes.create('acme', DEFAULT_ANSWER)).toThrow('2 inboxes already');
    expect(inboxes.list('acme')).toEqual([first]);
    expect(inboxes.list(null)).toEqual([second, first]);
    pass(30_000);
    expect(inboxes.find(first.token)).toBeNull();
    expect(inboxes.find(second.token)).toBe(second);
    // That was a use.
    pass(50_000);
    expect(inboxes.find(second.token)).toBe(second);
    inboxes.delete(second.token);
    expect(inboxes.list(null)).toEqual([]);
  });

  it('have tokens that nobody guesses', () => {
    const { inboxes } = newInboxes();
    const { token } = inboxes.create('acme', DEFAULT_ANSWER);
    expect(Buffer.from(token, 'base64url')).toHaveLength(16);
  });
});
