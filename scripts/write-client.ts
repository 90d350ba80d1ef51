/** Writes packages/client/src/generated.ts from the routes. `npm run client:generate` */
import { writeFile } from 'node:fs/promises';
import { readDocument } from '../test/support/routes.ts';
import { clientCode } from './client-code.ts';

const file = new URL('../packages/client/src/generated.ts', import.meta.url);
await writeFile(file, clientCode(await readDocument()));
console.log(`wrote ${file.pathname}`);
