import { readFileSync } from 'node:fs';

interface PackageJson {
  readonly version: string;
  readonly engines: { readonly node: string };
}

/** package.json is two levels above src/config and above dist/config. */
function readPackage(): PackageJson {
  return JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as PackageJson;
}

export function readVersion(): string {
  return readPackage().version;
}

/** Such as `22.18`. */
export function oldestNode(): string {
  return readPackage().engines.node.replace('>=', '');
}
