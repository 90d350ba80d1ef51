/** Writes docs/configuration.md from the table of settings. `npm run docs:configuration` */
import { writeFile } from 'node:fs/promises';
import { configurationDocs, docsFile } from './configuration-docs.ts';

await writeFile(docsFile, configurationDocs());
console.log(`wrote ${docsFile}`);
