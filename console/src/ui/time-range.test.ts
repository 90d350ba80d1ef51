import { describe, expect, it } from 'vitest';
import { ANY_TIME, fromLocalInput, toLocalInput, toTimeRange } from './time-range.ts';

describe('toTimeRange', () => {
  const now = Date.parse('2027-01-31T12:00:00Z');

  it('turns a period into its start', () =>
    expect(toTimeRange({ ...ANY_TIME, hours: '24' }, now)).toEqual({ since: '2027-01-30T12:00:00.000Z' }));

  it('leaves out what is not set', () => {
    expect(toTimeRange(ANY_TIME, now)).toEqual({});
    expect(toTimeRange({ ...ANY_TIME, until: '2027-01-01T00:00:00.000Z' }, now)).toEqual({
      until: '2027-01-01T00:00:00.000Z',
    });
  });
});

describe('times of input fields', () => {
  it('keep the minute in both directions', () => {
    const iso = '2027-07-01T10:20:00.000Z';
    expect(fromLocalInput(toLocalInput(iso))).toBe(iso);
  });

  it('are empty for text that is not a time', () => {
    expect(toLocalInput('nonsense')).toBe('');
    expect(fromLocalInput('')).toBe('');
  });
});
