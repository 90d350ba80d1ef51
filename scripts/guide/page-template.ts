/** The frame around each page: contents on the left, search on top. Links are relative, so any web server can serve it. */
import path from 'node:path';
import { addressOf, type Chapter } from './contents.ts';
import { escapeHtml, type RenderedPage } from './render-page.ts';

interface TitledChapter extends Chapter {
  readonly titles: ReadonlyMap<string, string>;
}

interface FrameOptions {
  /** Whether Posthorn serves the guide, beside its API reference. */
  readonly hasReference: boolean;
}

export function renderFrame(
  page: RenderedPage,
  chapters: readonly TitledChapter[],
  { hasReference }: FrameOptions,
): string {
  const address = addressOf(page.file);
  const root = path.posix.relative(path.posix.dirname(address), '') || '.';
  const link = (file: string, title: string): string =>
    `<li><a href="${root}/${addressOf(file)}"${file === page.file ? ' aria-current="page"' : ''}>${escapeHtml(title)}</a></li>`;
  const contents = chapters
    .map(({ title, files, titles }) => {
      const links = files.map((file) => link(file, titles.get(file) ?? file)).join('\n');
      const isOpen = title !== 'Decisions' || files.includes(page.file);
      return `<details${isOpen ? ' open' : ''}><summary>${title}</summary><ul>${links}</ul></details>`;
    })
    .join('\n');
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${escapeHtml(page.title)} · Posthorn guide</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="${root}/guide.css">
<script type="module" src="${root}/search.js"></script>
</head>
<body>
<a class="skip" href="#content">Skip to content</a>
<header>
<a class="brand" href="${root}/index.html">Posthorn guide</a>
<div role="search"><input id="search" type="search" aria-label="Search the guide" placeholder="Search (press /)" autocomplete="off">
<ol id="results" aria-label="Search results" aria-live="polite" hidden></ol></div>
${hasReference ? `<a href="${root}/../../docs">API reference</a>` : ''}
</header>
<div class="columns">
<nav aria-label="Contents">
${contents}
</nav>
<main id="content">
${page.html}
</main>
</div>
</body>
</html>
`;
}
