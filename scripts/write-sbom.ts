/**
 * Prints a bill of materials (CycloneDX): the packages that the published package installs, and those whose code is in the
 * console's bundle. `npm run -s sbom > sbom.cdx.json`
 */
import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { bundledPackages } from './supply-chain.ts';

interface Component {
  readonly name: string;
  readonly group?: string;
}

interface Bom {
  components: Component[];
}

const root = fileURLToPath(new URL('..', import.meta.url));

function npmSbom(...options: readonly string[]): Bom {
  const args = ['sbom', '--sbom-format=cyclonedx', '--package-lock-only', ...options];
  return JSON.parse(execFileSync('npm', args, { cwd: root, encoding: 'utf8', maxBuffer: 2 ** 28 })) as Bom;
}

const nameOf = ({ group, name }: Component): string =>
  group === undefined || name.startsWith('@') ? name : `${group}/${name}`;

const installed = npmSbom('--omit=dev');
const known = new Set(installed.components.map(nameOf));
const bundled = new Set(bundledPackages());
for (const component of npmSbom().components)
  if (bundled.has(nameOf(component)) && !known.has(nameOf(component)))
    installed.components.push({ ...component, scope: 'required' } as Component);
process.stdout.write(`${JSON.stringify(installed, null, 2)}\n`);
