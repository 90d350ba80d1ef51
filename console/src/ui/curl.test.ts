import { expect, it } from 'vitest';
import { toCurl } from './curl.ts';

it('toCurl quotes everything for a shell, and leaves out the headers that curl sets', () => {
  const request = {
    url: "https://a.test/it's?x=1&y",
    headers: { 'content-type': 'application/json', 'Content-Length': '9', 'webhook-id': 'evt_1' },
    body: `{"a":"it's $HOME"}`,
  };
  expect(toCurl(request)).toBe(
    [
      `curl -X POST 'https://a.test/it'\\''s?x=1&y' \\`,
      `  -H 'content-type: application/json' \\`,
      `  -H 'webhook-id: evt_1' \\`,
      `  --data-binary '{"a":"it'\\''s $HOME"}'`,
    ].join('\n'),
  );
});
