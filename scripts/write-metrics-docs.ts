/** Writes docs/metrics.md from the catalogue of metrics. `npm run docs:metrics` */
import { writeFile } from 'node:fs/promises';
import { docsFile, metricsDocs } from './metrics-docs.ts';

await writeFile(docsFile, metricsDocs());
console.log(`wrote ${docsFile}`);
