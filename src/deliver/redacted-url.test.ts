import { expect, it } from 'vitest';
import { maskTarget } from './redacted-url.ts';

it.each([
  ['https://hooks.slack.test/services/T0/SECRET?x=1', 'https://hooks.slack.test/[redacted]'],
  ['http://127.0.0.1:8080', 'http://127.0.0.1:8080/[redacted]'],
  ['mailto:jane.doe@example.com', 'mailto:j…@example.com'],
  ['mailto:j%25ane@example.com', 'mailto:j…@example.com'],
  ['mailto:%22a@b%22@example.com', 'mailto:"…@example.com'],
  ['mailto:', 'mailto:[redacted]'],
  ['no URL', '[redacted]'],
])('OBS-4: %s is shown as %s', (url, shown) => {
  expect(maskTarget(url)).toBe(shown);
});
