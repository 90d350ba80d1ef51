import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { convert, openConverters, textOf, writeConfig } from '../../support/converters.ts';

const ORDER = `
  import { joinName } from './names.ts';
  import type { PosthornConfig } from 'posthorn';
  interface New { first: string; last: string }
  export default {
    converters: {
      'order.created': {
        '2026-04-01→2025-10-01': (data: New) => ({ name: joinName(data.first, data.last) }),
        '2025-10-01->2025-01-01': (data: { name: string }) => [data.name],
        'v2→v1': () => { for (;;) {} },
      },
    },
  } satisfies PosthornConfig;
`;
const NAMES = 'export const joinName = (first: string, last: string): string => [first, last].join(" ");';

describe('VER-2: posthorn.config.ts', () => {
  it('is loaded with its imports, and a chain of converters runs', async () => {
    const running = await openConverters(writeConfig({ 'posthorn.config.ts': ORDER, 'names.ts': NAMES }));
    const { set } = running;
    expect(set.size).toBe(3);
    expect(set.findPath('order.created', '2026-04-01', '2025-01-01')).toHaveLength(2);
    expect(set.findPath('order.created', '2025-01-01', '2026-04-01')).toBeNull();
    expect(set.findPath('order.paid', '2026-04-01', '2025-10-01')).toBeNull();
    const data = { first: 'Ann', last: 'Lee' };
    const steps = '2026-04-01→2025-10-01 2025-10-01→2025-01-01';
    expect(textOf(await convert(running, 'order.created', steps, data))).toBe('["Ann Lee"]');
  });

  it('keeps the code of its start when files change, and the hash names the code', async () => {
    const file = writeConfig({ 'posthorn.config.ts': ORDER, 'names.ts': NAMES });
    const running = await openConverters(file, { processes: 1, timeoutMs: 300 });
    writeFileSync(path.join(path.dirname(file), 'names.ts'), NAMES.replace('" "', '", "'));
    const steps = '2026-04-01→2025-10-01';
    const data = { first: 'Ann', last: 'Lee' };
    // The pool replaces the process, and the new one loads the configuration again.
    expect(textOf(await convert(running, 'order.created', 'v2→v1', data))).toMatch('300 ms');
    expect(textOf(await convert(running, 'order.created', steps, data))).toBe('{"name":"Ann Lee"}');
    const restarted = await openConverters(file);
    expect(textOf(await convert(restarted, 'order.created', steps, data))).toBe('{"name":"Ann, Lee"}');
    expect(restarted.set.hash).not.toBe(running.set.hash);
    const copy = await openConverters(writeConfig({ 'posthorn.config.ts': ORDER, 'names.ts': NAMES }));
    expect(copy.set.hash).toBe(running.set.hash);
  });

  it.each([
    ['posthorn.config.mjs', "export const converters = { a: { '2→1': (data) => data.x } };"],
    ['posthorn.config.js', "module.exports = { converters: { a: { '2→1': (data) => data.x } } };"],
    ['posthorn.config.cjs', "exports.converters = { a: { '2->1': (data) => data.x } };"],
    ['posthorn.config.mts', "export default { converters: { a: { '2→1': (data: any) => data.x } } };"],
  ])('may be called %s', async (name, text) => {
    const running = await openConverters(writeConfig({ [name]: text }));
    expect(textOf(await convert(running, 'a', '2→1', { x: 7 }))).toBe('7');
  });

  it.each([
    ['export default {', /SyntaxError/],
    ["import './missing.ts'; export default {};", /missing/],
    ["throw new Error('no database');", /no database/],
    ['process.exit(0);', /ended its process/],
    ['export default 7;', /default export/],
    ['export default { converters: [] };', /converters must be an object/],
    ["export default { converters: { 'order created': { '2→1': () => 1 } } };", /not an event type/],
    ['export default { converters: { a: { newest: () => 1 } } };', /two versions/],
    ["export default { converters: { a: { '2→1': 'x' } } };", /must be a function/],
    ["export default { converters: { a: { '2→1': () => 1, '2->1': () => 2 } } };", /twice/],
    ['export default { converters: { a: () => 1 } };', /must be an object/],
    ['enum X { A } export default {};', /enum|SyntaxError/i],
  ])('is refused with a reason: %s', async (text, reason) => {
    const file = writeConfig({ 'posthorn.config.ts': text });
    await expect(openConverters(file)).rejects.toThrow(reason);
    await expect(openConverters(file)).rejects.toThrow(file);
  });

  it('is refused if it does not exist or is no module', async () => {
    await expect(openConverters('/nowhere/posthorn.config.ts')).rejects.toThrow(/no such file/);
    await expect(openConverters(writeConfig({ 'posthorn.config.json': '{}' }))).rejects.toThrow(/end in/);
  });
});
