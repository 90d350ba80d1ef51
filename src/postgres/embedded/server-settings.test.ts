import { expect, test } from 'vitest';
import { fixedSettings, tunedSettings } from './server-settings.ts';

const GB = 1024 ** 3;

test.each([
  [0.5 * GB, '128MB'],
  [2 * GB, '256MB'],
  [64 * GB, '512MB'],
])('with %d bytes of memory shared_buffers is %s', (memory, expected) => {
  expect(tunedSettings(memory).shared_buffers).toBe(expected);
});

test('the settings keep commits durable and the server off the network', () => {
  expect(tunedSettings()).toMatchObject({ fsync: 'on', full_page_writes: 'on', synchronous_commit: 'on' });
  expect(fixedSettings('/a, "b"')).toMatchObject({
    listen_addresses: '',
    unix_socket_directories: '"/a, ""b"""',
  });
});
