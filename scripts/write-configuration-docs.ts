/** Writes docs/configuration.md and docs/internal-settings.md. `npm run docs:configuration` */
import { writeFile } from 'node:fs/promises';
import { configurationDocs } from './configuration-docs.ts';

for (const [file, text] of configurationDocs()) {
  await writeFile(file, text);
  console.log(`Wrote ${file}`);
}
