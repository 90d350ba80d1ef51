/** Copies the SQL files to dist: the compiler copies only modules, and the program reads SQL from files next to them. */
import { cp, glob, mkdir } from 'node:fs/promises';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
let copied = 0;
for await (const file of glob('**/*.sql', { cwd: path.join(root, 'src') })) {
  const target = path.join(root, 'dist', file);
  await mkdir(path.dirname(target), { recursive: true });
  await cp(path.join(root, 'src', file), target);
  copied += 1;
}
console.log(`${copied} SQL files copied to dist`);
