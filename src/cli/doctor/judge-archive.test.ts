import { expect, test } from 'vitest';
import { judgeArchive } from './judge-archive.ts';

const URL = 'file:///archive';

test('doctor explains why a server without an archive drops nothing', () => {
  const finding = judgeArchive({ isRequired: true, error: null }, null);
  expect(finding).toMatchObject({ state: 'warning', todo: expect.stringContaining('posthorn archive off') });
  expect(judgeArchive({ isRequired: false, error: null }, null)).toMatchObject({ state: 'ok' });
});

test('doctor says where expired data is archived, and what is wrong with the archive', () => {
  expect(judgeArchive({ isRequired: true, error: null }, URL)).toMatchObject({
    state: 'ok',
    detail: `expired data is archived at ${URL}`,
  });
  expect(judgeArchive({ isRequired: true, error: 'The disk is full.' }, URL)).toMatchObject({
    state: 'warning',
    detail: 'The disk is full. Nothing that is not archived is deleted.',
  });
});
