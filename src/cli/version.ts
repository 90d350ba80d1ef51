import { readFileSync } from 'node:fs';

/** From package.json, which lies two levels up from src/cli as well as from dist/cli. */
export function readVersion(): string {
  const file = new URL('../../package.json', import.meta.url);
  return (JSON.parse(readFileSync(file, 'utf8')) as { version: string }).version;
}
