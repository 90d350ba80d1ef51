import { expect, it } from 'vitest';
import { findSection, labelField, translateMessage } from './endpoint-labels.ts';

it.each([
  ['url', 'URL', 'destination'],
  ['timeout_ms', 'Timeout (ms)', 'delivery'],
  ['retry.schedule[2]', 'Seconds before each attempt', 'retries'],
  ['retry.unknown', 'Policy', 'retries'],
  ['debounce.window_ms', 'Window (ms)', 'delivery'],
  ['batch', 'Requests', 'delivery'],
  ['auth.password', 'Authentication', 'access'],
  ['filter.data.amount.$near', 'Filter (JSON)', 'destination'],
  ['elsewhere', 'elsewhere', null],
])('the error of %s is shown as "%s" in the section %s', (path, label, section) => {
  expect(labelField(path)).toBe(label);
  expect(findSection(path)).toBe(section);
});

it.each([
  ['debounce.max_wait_ms', 'must not be less than window_ms', 'must not be less than "Window (ms)"'],
  ['batch', 'cannot be combined with api_version', 'cannot be combined with "API version"'],
  ['url', 'must not be some_thing else', 'must not be some_thing else'],
])('the error of %s, "%s", is shown as "%s"', (path, message, shown) => {
  expect(translateMessage({ path, message })).toBe(shown);
});
