/** VER-2: a converter that misbehaves affects only its own conversions. */
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import type { RunningConverters } from '../../../src/convert/load-converters.ts';
import { convert, openConverters, textOf, writeConfig } from '../../support/converters.ts';

/** Each is the body of a converter. A text in the answer, or what it converts to. */
const CASES: readonly (readonly [what: string, body: string, answer: RegExp | string])[] = [
  ['hangs', 'for (;;) {}', /did not return within/],
  [
    'hangs in a regular expression',
    "/^(a+)+$/.test('a'.repeat(40) + 'b'); return 1;",
    /did not return within|1/,
  ],
  [
    'blocks on a lock',
    'Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0); return 1;',
    /did not return/,
  ],
  ['throws', "throw new Error('no');", /bad→1: no/],
  ['throws nothing', 'throw undefined;', /threw undefined/],
  ['throws a symbol', "throw Symbol('x');", /threw Symbol\(x\)/],
  ['throws what cannot be read', 'throw { toString() { throw 1; } };', /cannot be shown/],
  [
    'throws an error that hangs when it is read',
    'const e = new Error(); Object.defineProperty(e, "message", { get() { for (;;) {} } }); throw e;',
    /did not return/,
  ],
  ['throws a message of a megabyte', "throw new Error('x'.repeat(1e6));", /^.{0,400}$/],
  ['recurses forever', 'const f = () => f(); f();', /RangeError/],
  ['ends the process', 'process.exit(1);', /ended its process/],
  ['aborts the process', 'process.abort();', /not supported|unsupported|not available/i],
  ['kills the process', "process.kill(process.pid, 'SIGKILL'); return 1;", /process.kill is not available/],
  ['really exits', 'process.reallyExit(1);', /ended its process/],
  ['fills the heap', 'const all = []; for (;;) all.push({ a: [1, 2, 3] });', /memory|did not return/],
  [
    'fills memory outside of the heap',
    'const all = []; for (;;) all.push(Buffer.alloc(5e6, 1));',
    /memory|did not return/,
  ],
  [
    'builds a huge string',
    "return 'x'.repeat(5e8);",
    /memory|bytes|did not return|RangeError|ended|not JSON/,
  ],
  [
    'splits a huge string',
    "return 'a'.repeat(2.5e8).split('').length;",
    /used more than 64 MiB|did not return/,
  ],
  [
    'fills a huge array',
    'return new Array(2 ** 32 - 1).fill(0).length;',
    /used more than 64 MiB|did not return/,
  ],
  ['returns too much', "return 'x'.repeat(1e6);", /1000002 bytes; 262144 are allowed/],
  ['returns nothing', '', /returned undefined/],
  ['returns a function', 'return () => 1;', /not JSON/],
  ['returns a symbol', 'return Symbol();', /not JSON/],
  ['returns a promise', 'return Promise.resolve(1);', /returned a promise/],
  ['returns something like a promise', 'return { then() {} };', /returned a promise/],
  [
    'returns a promise inside',
    'return { a: [Promise.resolve(1)] };',
    /"0" of its result is not JSON \(Promise\)/,
  ],
  [
    'returns a list with a hole',
    'return { a: [1, undefined] };',
    /"1" of its result is not JSON \(undefined\)/,
  ],
  ['returns a field that is undefined', 'return { a: undefined, b: 1 };', '{"b":1}'],
  ['returns NaN', 'return { a: { b: NaN } };', /"b" of its result is not JSON \(NaN\)/],
  ['returns infinity', 'return -Infinity;', /not JSON/],
  ['returns a bigint', 'return { n: 1n };', /not JSON/],
  ['returns a map', 'return { m: new Map([[1, 2]]) };', /not JSON \(Map\)/],
  ['returns bytes', 'return { b: Buffer.from("x") };', /"data"|not JSON/],
  ['returns a cycle', 'const a = {}; a.a = a; return a;', /TypeError|circular/i],
  ['returns a toJSON that hangs', 'return { toJSON() { for (;;) {} } };', /did not return/],
  ['returns a getter that throws', "return { get a() { throw new Error('got'); } };", /got/],
  [
    'returns a proxy that never ends',
    'const p = new Proxy({}, { ownKeys: () => ["a"], getOwnPropertyDescriptor: () => ({ enumerable: true, configurable: true }), get: () => p }); return p;',
    /RangeError|did not return|TypeError|memory|promise/,
  ],
  [
    'is nested a million deep',
    'let a = []; for (let i = 0; i < 1e6; i += 1) a = [a]; return a;',
    /RangeError|memory|did not return|ended/,
  ],
  [
    'replaces JSON',
    "JSON.stringify = () => 'forged'; JSON.parse = () => ({}); return { fine: 1 };",
    '{"fine":1}',
  ],
  [
    'replaces the prototypes',
    'Map.prototype.get = Array.prototype.push = () => { throw 1; }; return 7;',
    '7',
  ],
  [
    'pollutes Object.prototype',
    'Object.prototype.toJSON = () => "polluted"; return { fine: 2 };',
    /TypeError/,
  ],
  [
    'posts forged answers',
    "process.send?.({ kind: 'converted', id: 1, data: new Uint8Array() }); return { send: typeof process.send };",
    '{"send":"undefined"}',
  ],
  [
    'reads the environment',
    'return Object.keys(process.env).filter((name) => /POSTHORN|DATABASE|SECRET/.test(name));',
    '[]',
  ],
  ['prints a lot', "for (let i = 0; i < 1e4; i += 1) console.log('x'.repeat(1000)); return 8;", '8'],
  ['fails later', "setTimeout(() => { throw new Error('late'); }, 1); return 3;", '3'],
  ['hangs later', 'setImmediate(() => { for (;;) {} }); return 4;', '4'],
  ['exits later', 'setImmediate(() => process.exit(1)); return 5;', '5'],
  ['rejects later', 'Promise.reject(new Error("late")); return 6;', '6'],
  ['leaves an interval', 'setInterval(() => {}, 1); return 9;', '9'],
];

const config = (body: string): string => `
  const leaked = [];
  export default { converters: {
    bad: { 'bad→1': (data) => { ${body} }, 'leak→1': () => { leaked.push(Buffer.alloc(8e6, 1)); return leaked.length; } },
    good: { '2→1': (data) => ({ ...data, good: true }) },
  } };`;
const isFine = async (running: RunningConverters, tenant: string) =>
  textOf(await convert(running, 'good', '2→1', { n: 1 }, tenant)).includes('"good":true');

describe('VER-2: a converter that', () => {
  it.each(CASES)('%s fails alone, and other tenants get theirs converted', async (_what, body, expected) => {
    const running = await openConverters(writeConfig({ 'posthorn.config.mjs': config(body) }), {
      timeoutMs: 700,
    });
    const others = Array.from({ length: 5 }, (_, index) => isFine(running, `other-${index}`));
    const answer = textOf(await convert(running, 'bad', 'bad→1', { x: 1 }, 'bad'));
    if (typeof expected === 'string') expect(answer).toBe(expected);
    else expect(answer).toMatch(expected);
    // What it left behind may cost a process, but no conversion of others.
    expect(await Promise.all(others)).toEqual(others.map(() => true));
    expect(await isFine(running, 'bad')).toBe(true);
  });

  it('leaks a little each time loses its process before it harms the process', async () => {
    const running = await openConverters(writeConfig({ 'posthorn.config.mjs': config('') }), {
      processes: 1,
      timeoutMs: 5_000,
    });
    const before = process.memoryUsage().rss;
    const answers: string[] = [];
    for (let n = 0; n < 40; n += 1) answers.push(textOf(await convert(running, 'bad', 'leak→1', {})));
    expect(answers.every((answer) => /^\d+$/.test(answer))).toBe(true);
    // 40 times 8 MB would be 320 MB.
    expect(Math.max(...answers.map(Number))).toBeLessThan(12);
    expect(process.memoryUsage().rss - before).toBeLessThan(250e6);
  });

  it('hangs every time for a tenant rests for that tenant only, costs no process meanwhile, and is tried again later', async () => {
    const body = 'while (data.hangs); return 1;';
    const running = await openConverters(writeConfig({ 'posthorn.config.mjs': config(body) }), {
      timeoutMs: 300,
      pauseMs: 1_500,
    });
    const run = () => convert(running, 'bad', 'bad→1', { hangs: true }, 'bad').then(textOf);
    for (let n = 0; n < 3; n += 1) expect(await run()).toMatch('did not return');
    const startedAt = performance.now();
    for (let n = 0; n < 100; n += 1) expect(await run()).toBe('busy');
    expect(await convert(running, 'bad', 'bad→1', {}, 'other').then(textOf)).toBe('1');
    expect(performance.now() - startedAt).toBeLessThan(1_000);
    expect(await isFine(running, 'other')).toBe(true);
    await new Promise((resolve) => setTimeout(resolve, 1_600));
    expect(await run()).toMatch('did not return');
  });

  it('hangs after its answer delays the next conversion only, even if the new process fails to start at first', async () => {
    const file = writeConfig({
      'posthorn.config.mjs': `
        import { existsSync, rmSync } from 'node:fs';
        const flag = new URL('./fails-once', import.meta.url);
        if (existsSync(flag)) {
          rmSync(flag);
          throw new Error('not now');
        }
        ${config('setImmediate(() => { for (;;) {} }); return 4;')}`,
    });
    const problems: string[] = [];
    const onProblem = (what: string) => problems.push(what);
    const running = await openConverters(file, { processes: 1, timeoutMs: 500, onProblem });
    expect(textOf(await convert(running, 'bad', 'bad→1', {}))).toBe('4');
    writeFileSync(path.join(path.dirname(file), 'fails-once'), '');
    expect(await isFine(running, 'other')).toBe(true);
    expect(problems).toEqual(['start a converter process']);
  });

  it('is asked for too much makes others wait for one turn at most, and the queue is bounded', async () => {
    const slow = 'const end = Date.now() + 20; while (Date.now() < end); return 1;';
    const running = await openConverters(writeConfig({ 'posthorn.config.mjs': config(slow) }), {
      maxQueued: 50,
      maxQueuedPerTenant: 40,
    });
    const greedy = Array.from({ length: 100 }, () =>
      convert(running, 'bad', 'bad→1', {}, 'greedy').then(textOf),
    );
    const startedAt = performance.now();
    expect(await isFine(running, 'small')).toBe(true);
    expect(performance.now() - startedAt).toBeLessThan(900);
    const answers = await Promise.all(greedy);
    expect(answers.filter((answer) => answer === 'busy').length).toBeGreaterThan(50);
    expect(answers.filter((answer) => answer === '1').length).toBeGreaterThan(30);
  });
});
