import { expect, test } from 'vitest';
import { changedFolders } from './file-target.ts';

test('LIF-2: new directories are made durable with the file in them', () => {
  const folder = '/archive/events/day=2026-11-15';
  expect(changedFolders(folder, undefined)).toEqual([folder]);
  expect(changedFolders(folder, folder)).toEqual([folder, '/archive/events']);
  expect(changedFolders(folder, '/archive/events')).toEqual([folder, '/archive/events', '/archive']);
});
