import { describe, expect, it } from 'vitest';
import { parseArguments } from './arguments.ts';
import { wrap } from './help.ts';
import { complainAboutNode } from './version.ts';

describe('parseArguments', () => {
  it('takes values after a space and after an equals sign', () => {
    expect(parseArguments(['dev', '--port', '80', '--egress-allow=10.0.0.0/8,::1'])).toEqual({
      positionals: ['dev'],
      flags: { port: '80', 'egress-allow': '10.0.0.0/8,::1' },
      wantsHelp: false,
      wantsVersion: false,
      wantsPrint: false,
      wantsJson: false,
    });
  });

  it('lets the last one of two count', () => {
    expect(parseArguments(['--port', '1', '--port', '2']).flags).toEqual({ port: '2' });
  });

  it('takes a switch on, off, and with a value', () => {
    expect(parseArguments(['--wait']).flags).toEqual({ wait: 'true' });
    expect(parseArguments(['--wait', '--no-wait']).flags).toEqual({ wait: 'false' });
    expect(parseArguments(['--wait=off']).flags).toEqual({ wait: 'off' });
    expect(() => parseArguments(['--no-wait=1'])).toThrow('--no-wait takes no value.');
    expect(() => parseArguments(['--no-help'])).toThrow(/There is no flag/);
    expect(() => parseArguments(['--no-port'])).toThrow(/There is no flag/);
  });

  it('passes an empty value on, to be refused with its reason', () => {
    expect(parseArguments(['--port=']).flags).toEqual({ port: '' });
  });

  it.each(['--toString', '--__proto__', '--constructor=1'])('knows no flag %s', (flag) => {
    expect(() => parseArguments([flag])).toThrow(/There is no flag/);
  });

  it('leaves alone what follows --', () => {
    expect(parseArguments(['help', '--', '--port']).positionals).toEqual(['help', '--port']);
  });
});

describe('complainAboutNode', () => {
  it.each(['22.18.0', '22.19.1', '24.0.0', '25.1.0'])('is content with %s', (version) => {
    expect(complainAboutNode(version)).toBeNull();
  });
  it.each(['18.20.0', '20.19.5', '22.17.9'])('is not with %s', (version) => {
    expect(complainAboutNode(version)).toBe(`Posthorn needs Node 22.18 or later; this is ${version}.`);
  });
});

it('wrap breaks at words and loses none', () => {
  expect(wrap('one two three', 7)).toEqual(['one two', 'three']);
  expect(wrap('averyveryverylongword x', 5)).toEqual(['averyveryverylongword', 'x']);
});
