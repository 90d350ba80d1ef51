import { expect, it } from 'vitest';
import { findSection, labelField } from './endpoint-labels.ts';

it.each([
  ['url', 'URL', 'destination'],
  ['timeout_ms', 'Timeout (ms)', 'delivery'],
  ['retry.schedule[2]', 'Seconds before each attempt', 'retries'],
  ['retry.unknown', 'Policy', 'retries'],
  ['auth.password', 'Authentication', 'access'],
  ['filter.data.amount.$near', 'Filter (JSON)', 'destination'],
  ['elsewhere', 'elsewhere', null],
])('the error of %s is shown as "%s" in the section %s', (path, label, section) => {
  expect(labelField(path)).toBe(label);
  expect(findSection(path)).toBe(section);
});
