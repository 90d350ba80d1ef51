import { describe, expect, it } from 'vitest';
import { inParallel, onStop, type Service, startAll, stopAll } from './lifecycle.ts';

function newServices(names: readonly string[], failing: { start?: string; stop?: string } = {}) {
  const happened: string[] = [];
  const services = names.map(
    (name): Service => ({
      start() {
        happened.push(`start ${name}`);
        if (failing.start === name) throw new Error(`${name} does not start`);
      },
      async stop() {
        happened.push(`stop ${name}`);
        if (failing.stop === name) throw new Error(`${name} does not stop`);
      },
    }),
  );
  return { services, happened };
}

describe('services', () => {
  it('start in order and stop in reverse', async () => {
    const { services, happened } = newServices(['a', 'b']);
    await startAll(services);
    await stopAll(services);
    expect(happened).toEqual(['start a', 'start b', 'stop b', 'stop a']);
  });

  it('all stop if one does not start', async () => {
    const { services, happened } = newServices(['a', 'b', 'c'], { start: 'b' });
    await expect(startAll(services)).rejects.toThrow('b does not start');
    expect(happened).toEqual(['start a', 'start b', 'stop c', 'stop b', 'stop a']);
  });

  it('all stop even if one of them throws, and the error is thrown afterwards', async () => {
    const { services, happened } = newServices(['a', 'b', 'c'], { stop: 'b' });
    await expect(stopAll(services)).rejects.toThrow('b does not stop');
    expect(happened).toEqual(['stop c', 'stop b', 'stop a']);
  });

  it('in parallel are one service, and absent ones are ignored', async () => {
    const { services, happened } = newServices(['a', 'b']);
    const group = inParallel(services[0]!, null, services[1]!);
    await startAll([group, onStop(() => void happened.push('last in, first out'))]);
    await stopAll([group, onStop(() => void happened.push('last in, first out'))]);
    expect(happened).toEqual(['start a', 'start b', 'last in, first out', 'stop a', 'stop b']);
  });
});
