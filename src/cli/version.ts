import { readFileSync } from 'node:fs';

interface PackageJson {
  readonly version: string;
  readonly engines: { readonly node: string };
}

/** package.json lies two levels up from src/cli as well as from dist/cli. */
function readPackage(): PackageJson {
  return JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as PackageJson;
}

export function readVersion(): string {
  return readPackage().version;
}

/** What to say if this Node is too old, or null. npm only warns of it, and what fails later explains nothing. */
export function complainAboutNode(running: string = process.versions.node): string | null {
  const needed = readPackage().engines.node.replace('>=', '');
  const [major = 0, minor = 0] = running.split('.').map(Number);
  const [neededMajor = 0, neededMinor = 0] = needed.split('.').map(Number);
  if (major > neededMajor || (major === neededMajor && minor >= neededMinor)) return null;
  return `Posthorn needs Node ${needed} or later; this is ${running}.`;
}
