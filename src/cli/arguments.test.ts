import { describe, expect, it } from 'vitest';
import { parseArguments } from './arguments.ts';
import { wrap } from './help.ts';
import { checkNodeVersion } from './version.ts';

describe('parseArguments', () => {
  it('takes values after a space and after an equals sign', () => {
    expect(parseArguments(['dev', '--port', '80', '--egress-allow=10.0.0.0/8,::1'])).toEqual({
      positionals: ['dev'],
      flags: { port: '80', 'egress-allow': '10.0.0.0/8,::1' },
      options: {},
      wantsHelp: false,
      wantsVersion: false,
      wantsPrint: false,
      wantsJson: false,
    });
  });

  it('uses the last value of a flag that is given twice', () => {
    expect(parseArguments(['--port', '1', '--port', '2']).flags).toEqual({ port: '2' });
  });

  it('accepts a switch as --wait, --no-wait and with a value', () => {
    expect(parseArguments(['--wait']).flags).toEqual({ wait: 'true' });
    expect(parseArguments(['--wait', '--no-wait']).flags).toEqual({ wait: 'false' });
    expect(parseArguments(['--wait=off']).flags).toEqual({ wait: 'off' });
    expect(() => parseArguments(['--no-wait=1'])).toThrow('--no-wait takes no value.');
    expect(() => parseArguments(['--no-help'])).toThrow(/There is no flag/);
    expect(() => parseArguments(['--no-port'])).toThrow(/There is no flag/);
  });

  it('keeps an empty value, so that the configuration can refuse it with a reason', () => {
    expect(parseArguments(['--port=']).flags).toEqual({ port: '' });
  });

  it.each(['--toString', '--__proto__', '--constructor=1'])('refuses %s, which is not a flag', (flag) => {
    expect(() => parseArguments([flag])).toThrow(/There is no flag/);
  });

  it('does not parse arguments after --', () => {
    expect(parseArguments(['help', '--', '--port']).positionals).toEqual(['help', '--port']);
  });
});

describe('checkNodeVersion', () => {
  it.each(['22.18.0', '22.19.1', '24.0.0', '25.1.0'])('accepts Node %s', (version) => {
    expect(checkNodeVersion(version)).toBeNull();
  });
  it.each(['18.20.0', '20.19.5', '22.17.9'])('refuses Node %s', (version) => {
    expect(checkNodeVersion(version)).toBe(`Posthorn needs Node 22.18 or later; this is ${version}.`);
  });
});

it('wrap breaks lines between words and loses no word', () => {
  expect(wrap('one two three', 7)).toEqual(['one two', 'three']);
  expect(wrap('averyveryverylongword x', 5)).toEqual(['averyveryverylongword', 'x']);
});
