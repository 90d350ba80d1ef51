import { expect, it } from 'vitest';
import { suggestName, toNewVersionDraft, toVersionDraft, toVersionSettings } from './version-draft.ts';

const version = {
  event_type: 'order.created',
  version: 'v2',
  description: 'An order was placed.',
  changelog: 'Adds the currency.',
  schema: { type: 'object' },
  example: { id: 'ord_1' },
  status: 'deprecated' as const,
  sunset_at: '2027-01-31T12:00:00.000Z',
  latest: true,
  created_at: '2026-04-01T00:00:00.000Z',
  updated_at: '2026-04-01T00:00:00.000Z',
};
const TODAY = new Date('2027-02-01T10:00:00Z');

it('VER-1: a version that was read is written back unchanged', () => {
  const { schema, example, description, changelog, status, sunset_at } = version;
  expect(toVersionSettings(toVersionDraft(version))).toEqual({
    schema,
    example,
    description,
    changelog,
    status,
    sunset_at,
  });
});

it('VER-1: a new version starts as a copy of the newest one, with the next name and without its sunset', () => {
  expect(toNewVersionDraft(version, TODAY)).toMatchObject({
    version: 'v3',
    schema: '{\n  "type": "object"\n}',
    changelog: '',
    status: 'active',
    sunset: '',
  });
  expect(suggestName('2026-04-01', TODAY)).toBe('2027-02-01');
  expect(suggestName(undefined, TODAY)).toBe('2027-02-01');
});

it('VER-1: invalid JSON is named', () => {
  const draft = toVersionDraft(version);
  expect(() => toVersionSettings({ ...draft, schema: '{' })).toThrow('The schema is not valid JSON.');
  expect(() => toVersionSettings({ ...draft, example: '{' })).toThrow('The example is not valid JSON.');
  expect(toVersionSettings({ ...draft, schema: ' ', sunset: '' })).toMatchObject({
    schema: null,
    sunset_at: null,
  });
});
