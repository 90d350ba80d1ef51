/**
 * Prints a bill of materials (CycloneDX): the packages that the published package installs, and those whose code is in the
 * console and the guide. `npm run -s sbom > sbom.cdx.json`
 */
import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { shippedPackages } from './supply-chain.ts';

interface Bom {
  readonly metadata: { readonly component: Record<string, unknown> };
  readonly components: readonly {
    readonly name: string;
    readonly version: string;
    readonly 'bom-ref': string;
  }[];
  readonly dependencies: readonly { readonly ref: string; readonly dependsOn: readonly string[] }[];
}

const root = fileURLToPath(new URL('..', import.meta.url));
const args = ['sbom', '--sbom-format=cyclonedx', '--package-lock-only'];
const bom = JSON.parse(execFileSync('npm', args, { cwd: root, encoding: 'utf8', maxBuffer: 2 ** 28 })) as Bom;

// Not `--omit=dev`: npm then leaves out packages that a development tool needs too.
const shipped = shippedPackages();
const components = bom.components
  .filter(({ name, version }) => shipped.has(`${name}@${version}`))
  .map((component) => ({ ...component, scope: 'required' }));
const refs = new Set([
  ...components.map((each) => each['bom-ref']),
  String(bom.metadata.component['bom-ref']),
]);
const dependencies = bom.dependencies
  .filter(({ ref }) => refs.has(ref))
  .map(({ ref, dependsOn }) => ({ ref, dependsOn: dependsOn.filter((each) => refs.has(each)) }));
// npm takes the name of the directory.
const metadata = { ...bom.metadata, component: { ...bom.metadata.component, name: 'posthorn' } };
process.stdout.write(`${JSON.stringify({ ...bom, metadata, components, dependencies }, null, 2)}\n`);
