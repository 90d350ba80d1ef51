/** The documentation as Posthorn serves it at /docs/guide. */
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { beforeAll, expect, onTestFinished, test } from 'vitest';
import { buildGuide } from '../../scripts/build-guide.ts';
import { isGuideOutdated } from '../../scripts/guide/is-outdated.ts';
import { usePosthorn } from '../support/posthorn.ts';

const posthorn = usePosthorn();
beforeAll(async () => {
  if (await isGuideOutdated()) await buildGuide();
});

async function load(address: string): Promise<{ html: string; links: string[] }> {
  const answer = await fetch(address);
  expect(answer.status, address).toBe(200);
  const html = await answer.text();
  const targets = [...html.matchAll(/(?:href|src)="([^"]+)"/g)].map(([, target]) => target!);
  const links = targets.filter((target) => !/^(data:|mailto:|https?:)/.test(target));
  return { html, links: links.map((target) => new URL(target, answer.url).href) };
}

async function statusOf(address: string): Promise<number> {
  const answer = await fetch(address);
  await answer.arrayBuffer();
  return answer.status;
}

test('every page is reached from the first, and every link and anchor leads somewhere', async () => {
  const start = `${posthorn.url}/docs/guide`;
  const pages = new Map<string, string>();
  const broken: string[] = [];
  const wanted = new Map<string, string>([[start, 'the start']]);
  for (const [link, from] of wanted) {
    const [address = '', anchor] = link.split('#');
    if (!pages.has(address)) {
      const isPage = address === start || address.endsWith('.html');
      const { html, links } = isPage ? await load(address) : { html: '', links: [] };
      if (!isPage) expect(await statusOf(address), `${link}, linked in ${from}`).toBe(200);
      pages.set(address, html);
      for (const next of links) if (!wanted.has(next)) wanted.set(next, address);
    }
    if (anchor !== undefined && !pages.get(address)!.includes(`id="${anchor}"`))
      broken.push(`${link}, linked in ${from}`);
  }
  expect(broken).toEqual([]);
  expect([...pages.keys()].filter((address) => address.endsWith('.html')).length).toBeGreaterThan(40);
});

test('pages load nothing from elsewhere, and unknown ones are 404', async () => {
  const answer = await fetch(`${posthorn.url}/docs/guide/operate/deploy.html`);
  expect(answer.headers.get('content-security-policy')).toContain("default-src 'none'; script-src 'self'");
  expect(await answer.text()).toContain('<h1 id="deploy">');
  expect(await statusOf(`${posthorn.url}/docs/guide/nothing.html`)).toBe(404);
  expect(await statusOf(`${posthorn.url}/docs/guide/..%2f..%2fpackage.json`)).toBe(404);
});

test('the guide as static files has every page, its search, and no link that only the server has', async () => {
  const folder = await mkdtemp(path.join(tmpdir(), 'posthorn-guide-'));
  onTestFinished(() => rm(folder, { recursive: true }));
  const output = path.join(folder, 'site');
  await buildGuide(output);
  const files = await readdir(output, { recursive: true });
  for (const name of ['index.html', 'search.json', 'search.js', 'minisearch.js', 'guide.css'])
    expect(files).toContain(name);
  const pages = files.filter((name) => name.endsWith('.html'));
  expect(pages.length).toBeGreaterThan(40);
  for (const page of pages) {
    const html = await readFile(path.join(output, page), 'utf8');
    const targets = [...html.matchAll(/(?:href|src)="([^"#]+)/g)].map(([, target]) => target!);
    // A folder of files may lie anywhere: every link is relative and stays inside.
    for (const target of targets.filter((each) => !/^(data:|mailto:|https?:)/.test(each)))
      expect(files, `${target} in ${page}`).toContain(path.join(path.dirname(page), decodeURI(target)));
  }
});
