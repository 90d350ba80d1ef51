import { expect, it } from 'vitest';
import { parseMessage } from './stream.ts';

it.each([
  ['event: attempt\ndata: {"number":1}', { event: 'attempt', data: { number: 1 } }],
  ['data: {"a":\ndata: 1}', { event: 'message', data: { a: 1 } }],
  [': heartbeat', null],
  ['event: attempt\ndata: {broken', null],
])('parseMessage reads the block %j', (block, message) => {
  expect(parseMessage(block)).toEqual(message);
});
