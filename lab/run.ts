/**
 * `npm run lab`: compares policies for weeks of virtual time and writes the tables and pictures of docs/lab.md.
 * `--quick` takes a minute and prints the tables only: it shows that the lab works, not what it finds.
 */
import { readFile, writeFile } from 'node:fs/promises';
import { availableParallelism } from 'node:os';
import { parseArgs } from 'node:util';
import { replaceMarked } from '../scripts/marked-text.ts';
import { runExperiments } from './experiments.ts';
import { planLab } from './plan.ts';
import { plots } from './plots.ts';
import { tables } from './tables.ts';

const { values } = parseArgs({
  options: {
    quick: { type: 'boolean', default: false },
    seed: { type: 'string', default: '1' },
    threads: { type: 'string', default: String(availableParallelism()) },
    help: { type: 'boolean', default: false },
  },
});
if (values.help) {
  console.log('npm run lab -- [--quick] [--seed 1] [--threads 2]');
  process.exit(0);
}

const results = await runExperiments(
  planLab(Number(values.seed), values.quick),
  Number(values.threads),
  (done, of, seconds) =>
    process.stderr.write(`\r\u001b[K${done} of ${of} runs (last: ${seconds.toFixed(1)} s)`),
);
process.stderr.write('\r\u001b[K');

const written = Object.entries(tables).map(([name, write]) => [name, write(results)] as const);
for (const [name, text] of written) console.log(`\n${name}\n${text}`);

// Only the full run with the seed of the document replaces its figures.
if (!values.quick && values.seed === '1') {
  const root = new URL('../', import.meta.url);
  const document = new URL('docs/lab.md', root);
  let text = await readFile(document, 'utf8');
  for (const [name, content] of written) text = replaceMarked(text, `lab:${name}`, content);
  await writeFile(document, text);
  for (const [file, draw] of Object.entries(plots))
    await writeFile(new URL(`docs/images/${file}`, root), draw(results));
  console.log('\nWrote docs/lab.md and docs/images/lab-*.svg.');
}
