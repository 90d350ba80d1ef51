/** Writes NOTICE and the table in docs/dependencies.md from package-lock.json. `npm run docs:dependencies` */
import { readFile, writeFile } from 'node:fs/promises';
import { DEPENDENCIES_FILE, dependenciesDocs, NOTICE_FILE, noticeText } from './supply-chain.ts';

await writeFile(NOTICE_FILE, noticeText());
await writeFile(DEPENDENCIES_FILE, dependenciesDocs(await readFile(DEPENDENCIES_FILE, 'utf8')));
console.log('wrote NOTICE and docs/dependencies.md');
