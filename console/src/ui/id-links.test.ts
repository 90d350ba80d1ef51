import { expect, it } from 'vitest';
import { findIdLink } from './id-links.ts';

const ID = '01m7ffwgcqe06adng9gn7dt000';

it.each([
  [`evt_${ID}`, `/events/evt_${ID}`],
  [`  see https://example.com/evt_${ID}?x `, `/events/evt_${ID}`],
  [`dlv_${ID}`, `/deliveries/dlv_${ID}`],
  [`ep_${ID}`, `/endpoints/ep_${ID}`],
  [`in bat_${ID}:`, `/batches/bat_${ID}`],
  [`"task_${ID}"`, `/tasks/task_${ID}`],
  [`key_${ID}`, undefined],
  ['evt_short', undefined],
  ['order.created', undefined],
  ['', undefined],
])('the text %j links to %s', (text, to) => {
  expect(findIdLink(text)?.to).toBe(to);
});
