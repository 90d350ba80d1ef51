import { expect, it } from 'vitest';
import { describeEstimate } from './estimate-text.ts';

const estimate = {
  since: '2027-01-31T11:00:00.000Z',
  until: '2027-01-31T12:00:00.000Z',
  events: 41_200,
  requests: 312,
  examined: 52_000,
  is_complete: true,
};

it('FAN-4: the estimate names both figures, and says if it covers a part of the hour only', () => {
  expect(describeEstimate(estimate)).toBe(
    'In the last hour this would have sent 312 requests instead of 41,200, if the receiver had answered at once.',
  );
  const partial = describeEstimate({ ...estimate, since: '2027-01-31T11:48:00.000Z', is_complete: false });
  expect(partial).toContain('In the last 12 min this would have sent 312 requests');
  expect(partial).toContain('the newest 52,000 events');
  expect(describeEstimate({ ...estimate, events: 0, requests: 0 })).toContain('no events');
  expect(describeEstimate({ ...estimate, examined: 0, events: 0, requests: 0 })).toBe(
    'There are no events of the last hour to estimate the effect on.',
  );
});
