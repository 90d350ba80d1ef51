/** Builds the guide from README.md and docs: node scripts/build-guide.ts [folder]. The folder can be served as it is. */
import { cp, mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import MiniSearch from 'minisearch';
import { addressOf, ROOT, readContents } from './guide/contents.ts';
import { GUIDE_OUTPUT } from './guide/is-outdated.ts';
import { renderFrame } from './guide/page-template.ts';
import { type RenderedPage, renderPage } from './guide/render-page.ts';

const OWN_FILES = ['search.js', 'guide.css'];

export async function buildGuide(output = GUIDE_OUTPUT): Promise<void> {
  const chapters = await readContents();
  const files = new Set(chapters.flatMap((chapter) => chapter.files));
  const pages = await Promise.all(
    [...files].map(async (file) => renderPage(file, await readFile(path.join(ROOT, file), 'utf8'), files)),
  );
  const titles = new Map(pages.map(({ file, title }) => [file, file === 'README.md' ? 'Posthorn' : title]));
  const titled = chapters.map((chapter) => ({ ...chapter, titles }));

  // Write to a draft and rename it: readers never see an incomplete guide, and one of two simultaneous builds wins.
  const draft = `${output}-${process.pid}`;
  const write = async (name: string, content: string): Promise<void> => {
    const target = path.join(draft, name);
    await mkdir(path.dirname(target), { recursive: true });
    await writeFile(target, content);
  };
  await Promise.all([
    ...pages.map((page) =>
      write(addressOf(page.file), renderFrame(page, titled, { hasReference: output === GUIDE_OUTPUT })),
    ),
    ...[...new Set(pages.flatMap(({ images }) => images))].map((image) =>
      cp(path.join(ROOT, image), path.join(draft, image.replace(/^docs\//, ''))),
    ),
    ...OWN_FILES.map((name) => cp(path.join(ROOT, 'scripts/guide', name), path.join(draft, name))),
    cp(fileURLToPath(import.meta.resolve('minisearch')), path.join(draft, 'minisearch.js')),
    write('search.json', JSON.stringify(buildIndex(pages))),
  ]);
  await rm(output, { recursive: true, force: true });
  await rename(draft, output).catch(() => rm(draft, { recursive: true }));
}

function buildIndex(pages: readonly RenderedPage[]): MiniSearch {
  const index = new MiniSearch({
    idField: 'address',
    fields: ['title', 'text'],
    storeFields: ['title', 'text'],
  });
  index.addAll(pages.flatMap(({ sections }) => sections));
  return index;
}

if (import.meta.main) {
  const output = process.argv[2] === undefined ? GUIDE_OUTPUT : path.resolve(process.argv[2]);
  await buildGuide(output);
  console.log(`guide: ${output}`);
}
