import { expect, it } from 'vitest';
import { convert, openConverters, textOf, writeConfig } from '../../test/support/converters.ts';

const CONFIG = `
  import { joinName } from './names.ts';
  import type { PosthornConfig } from 'posthorn';
  export default {
    converters: {
      'order.created': {
        '3→2': (data: { first: string; last: string }) => ({ name: joinName(data.first, data.last) }),
        '2->1': (data: { name: string }) => [data.name],
        'same→1': (data: unknown) => data,
        'hang→1': () => { for (;;) {} },
        'throw→1': () => { throw new TypeError('no name'); },
      },
    },
  } satisfies PosthornConfig;
`;
const NAMES = 'export const joinName = (first: string, last: string): string => [first, last].join(" ");';

it('VER-2: converts in processes of their own, by chains of TypeScript functions, and a hanging converter does not stop the others', async () => {
  const file = writeConfig({ 'posthorn.config.ts': CONFIG, 'names.ts': NAMES });
  const running = await openConverters(file, { timeoutMs: 2_000 });
  const run = async (steps: string, data: unknown, tenant?: string) =>
    textOf(await convert(running, 'order.created', steps, data, tenant));
  const hung = run('hang→1', {}, 'greedy');
  const queued = run('throw→1', {}, 'greedy');
  expect(await run('3→2 2→1', { first: 'Ann', last: 'Lee' })).toBe('["Ann Lee"]');
  // Numbers that JavaScript cannot hold stay as they were written.
  const precise = '{"id":9007199254740993,"amount":0.1234567890123456789,"n":1.0,"huge":1e999}';
  expect(await run('same→1', precise)).toBe(precise.replace('1.0', '1'));
  expect(await hung).toBe('The converter of order.created hang→1 did not return within 2000 ms.');
  expect(await queued).toBe('The converter of order.created failed. throw→1: TypeError: no name');
});
