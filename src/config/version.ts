import { readPackageJson } from './packaged-files.ts';

interface PackageJson {
  readonly version: string;
  readonly engines: { readonly node: string };
}

const readPackage = (): PackageJson => readPackageJson() as PackageJson;

export function readVersion(): string {
  return readPackage().version;
}

/** Such as `22.18`. */
export function oldestNode(): string {
  return readPackage().engines.node.replace('>=', '');
}
