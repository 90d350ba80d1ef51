import { expect, onTestFinished, test } from 'vitest';
import { findBinaries } from './binaries.ts';

test('on a platform without binaries, the error suggests DATABASE_URL', async () => {
  const real = Object.getOwnPropertyDescriptor(process, 'arch')!;
  onTestFinished(() => void Object.defineProperty(process, 'arch', real));
  Object.defineProperty(process, 'arch', { ...real, value: 'mips' });
  await expect(findBinaries(undefined, '/nonexistent', () => {})).rejects.toMatchObject({
    code: 'unsupported_platform',
    message: expect.stringContaining('mips'),
    hint: expect.stringContaining('DATABASE_URL'),
  });
});

test('the binaries of this platform are PostgreSQL 18', async () => {
  expect((await findBinaries(undefined, '/nonexistent', () => {})).version).toMatch(/^18\./);
});
