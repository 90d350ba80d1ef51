import { createHash } from 'node:crypto';
import { beforeAll, describe, expect, it } from 'vitest';
import { hollowServer, readDocument } from '../../../../test/support/routes.ts';
import { html, prose } from './html.ts';

let page: string;
let policy: string;

beforeAll(async () => {
  const server = await hollowServer();
  const answer = await server.inject('/docs');
  page = answer.body;
  policy = String(answer.headers['content-security-policy']);
  await server.close();
});

describe('the API reference', () => {
  it('has every operation and every schema, and no broken link', async () => {
    const { paths, components } = await readDocument();
    const ids = new Set([...page.matchAll(/ id="([^"]+)"/g)].map(([, id]) => id));
    for (const { operationId } of Object.values(paths).flatMap((path) => Object.values(path)))
      expect(ids).toContain(operationId);
    for (const name of Object.keys(components.schemas)) expect(ids).toContain(`schema-${name}`);
    const links = [...page.matchAll(/ href="#([^"]+)"/g)].map(([, id]) => id);
    expect(links.filter((id) => !ids.has(id))).toEqual([]);
    expect(links.length).toBeGreaterThan(100);
  });

  it('loads nothing, and its content security policy allows only its own style', () => {
    expect(page).not.toMatch(/<script|javascript:|\son\w+=|@import|url\(/i);
    expect([...page.matchAll(/<(?:link|img)[^>]+(?:href|src)="([^"]+)"/g)].map(([, url]) => url)).toEqual([
      'data:,',
    ]);
    const [, style] = /<style>([\s\S]*)<\/style>/.exec(page)!;
    const hash = createHash('sha256').update(style!).digest('base64');
    expect(policy).toContain("default-src 'none'");
    expect(policy).toContain(`style-src 'sha256-${hash}'`);
    expect(policy).not.toContain('unsafe');
  });

  it('shows how to call an operation', () => {
    expect(page).toContain('curl -X POST https://posthorn.example/v1/events \\\n');
    expect(page).toMatch(/curl -X DELETE https:\/\/posthorn\.example\/v1\/endpoints\/ep_\w+ /);
  });
});

describe('html', () => {
  it('escapes the values of a template', () => {
    expect(html`<b title="${'"<&>\''}">${['<', null, false, 1]}${html`<i>`}</b>`.text).toBe(
      '<b title="&quot;&lt;&amp;&gt;&#39;">&lt;1<i></b>',
    );
    expect(prose('a `<b>` c\n\nd').text).toBe('<p>a <code>&lt;b&gt;</code> c</p><p>d</p>');
  });
});
