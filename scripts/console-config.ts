/** How Vite builds the console, for the build and for the development server. */
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import type { InlineConfig } from 'vite';

const root = fileURLToPath(new URL('..', import.meta.url));

export const CONSOLE_SOURCES = path.join(root, 'console');
/** Beside the compiled program: what is published finds it there too. */
export const CONSOLE_OUTPUT = path.join(root, 'dist/console');

export const consoleConfig = async (): Promise<InlineConfig> => ({
  configFile: false,
  root: CONSOLE_SOURCES,
  base: '/console/',
  logLevel: 'warn',
  plugins: [(await import('@vitejs/plugin-react')).default()],
  build: {
    outDir: CONSOLE_OUTPUT,
    emptyOutDir: true,
    target: 'es2023',
    // A polyfill would be an inline script, and a data: URL an exception: the policy allows neither.
    modulePreload: { polyfill: false },
    assetsInlineLimit: 0,
  },
});
