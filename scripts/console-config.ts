/** The Vite configuration of the console. */
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import type { InlineConfig } from 'vite';

const root = fileURLToPath(new URL('..', import.meta.url));

export const CONSOLE_SOURCES = path.join(root, 'console');
/** Next to the compiled program, because the published package has no other folder. */
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
    // The content security policy allows neither inline scripts (the polyfill) nor data: URLs.
    modulePreload: { polyfill: false },
    assetsInlineLimit: 0,
  },
});
