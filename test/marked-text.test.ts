import { expect, it } from 'vitest';
import { replaceMarked } from '../scripts/marked-text.ts';

it('replaces the text between two markers, and nothing else', () => {
  const document = 'a\n<!-- x -->\nold\n<!-- /x -->\nb <!-- y -->\n<!-- /y -->';
  expect(replaceMarked(document, 'x', 'new $1')).toBe(
    'a\n<!-- x -->\nnew $1\n<!-- /x -->\nb <!-- y -->\n<!-- /y -->',
  );
});

it('fails if a marker is missing or there are two', () => {
  for (const document of ['', '<!-- x -->', '<!-- x --><!-- /x --><!-- x --><!-- /x -->'])
    expect(() => replaceMarked(document, 'x', '')).toThrow('exactly once');
});
